// SPDX-License-Identifier: LGPL-2.1-or-later
/* .bidfs/metrics, in the text format of Prometheus. */
#include <stdio.h>
#include <stdlib.h>

#include "fuse/backing.h"
#include "synthetic.h"

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP bidfs_%s %s\n# TYPE bidfs_%s %s\n", name, help, name, type);
}

static void metric(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	head(out, name, type, help);
	fprintf(out, "bidfs_%s %llu\n", name, (unsigned long long)value);
}

/* A label's value: backslash, quote and newline are escaped, by the format's rules. */
static void label(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fputc('\\', out);
		if (*value == '\n')
			fputs("\\n", out);
		else
			fputc(*value, out);
	}
}

/* "bidfs_NAME{source="..."" of @stats, to which more labels, a brace and a value may be added. */
static void begin_sample(FILE *out, const char *name, const struct bid_source_stats *stats)
{
	fprintf(out, "bidfs_%s{source=\"", name);
	label(out, stats->name);
	fputc('"', out);
}

static void answers(FILE *out, const struct bid_source_stats *stats)
{
	for (int outcome = BID_OUTCOME_NONE + 1; outcome < BID_OUTCOME_COUNT; outcome++) {
		begin_sample(out, "source_answers_total", stats);
		fprintf(out, ",outcome=\"%s\"} %llu\n", bid_outcome_name((enum bid_outcome)outcome),
			(unsigned long long)stats->outcomes[outcome]);
	}
}

static void bytes(FILE *out, const struct bid_source_stats *stats)
{
	begin_sample(out, "source_bytes_total", stats);
	fprintf(out, "} %llu\n", (unsigned long long)stats->bytes);
}

static void kept_from(FILE *out, const struct bid_source_stats *stats)
{
	begin_sample(out, "source_kept_from_total", stats);
	fprintf(out, "} %llu\n", (unsigned long long)stats->health.refused);
}

static void breaker(FILE *out, const struct bid_source_stats *stats)
{
	begin_sample(out, "source_breaker_open", stats);
	fprintf(out, "} %d\n", stats->health.breaker != BID_BREAKER_CLOSED);
}

/* Not at all of one that never answered. */
static void latency(FILE *out, const struct bid_source_stats *stats)
{
	if (stats->health.latency_ms == 0)
		return;
	begin_sample(out, "source_latency_seconds", stats);
	fprintf(out, "} %u.%03u\n", stats->health.latency_ms / 1000, stats->health.latency_ms % 1000);
}

/* All samples of one metric stand together, by the format's rules. */
static void per_source(FILE *out, struct bid_broker *broker)
{
	static const struct {
		const char *name, *type, *help;
		void (*write)(FILE *out, const struct bid_source_stats *stats);
	} metrics[] = {
		{ "source_answers_total", "counter", "Answers of a source, by outcome.", answers },
		{ "source_bytes_total", "counter", "Bytes received from a source.", bytes },
		{ "source_kept_from_total", "counter", "Requests that were kept from a source because its breaker was open.",
		  kept_from },
		{ "source_latency_seconds", "gauge", "From a request to the header of its answer, moving average.", latency },
		{ "source_breaker_open", "gauge", "Is a source left alone for a while, because it failed?", breaker },
	};
	struct bid_source_stats stats;

	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		head(out, metrics[i].name, metrics[i].type, metrics[i].help);
		for (size_t at = 0; bid_broker_source_stats(broker, at, &stats) == 0; at++)
			metrics[i].write(out, &stats);
	}
}

char *bid_metrics_text(const struct bid_fs *fs)
{
	struct bid_broker_stats stats;
	char *text = NULL;
	size_t size;
	int error;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	bid_broker_stats(fs->broker, &stats);
	metric(out, "hits_total", "counter", "Requests answered from the store.", stats.hits);
	metric(out, "fetched_total", "counter", "Artifacts fetched, checked and published.", stats.fetched);
	metric(out, "absent_total", "counter", "Requests answered as absent.", stats.absent);
	metric(out, "unknown_total", "counter", "Requests that timed out or whose sources could not be asked.", stats.unknown);
	metric(out, "rejected_total", "counter", "Bodies that were not what was asked for.", stats.rejected);
	metric(out, "interrupted_total", "counter", "Waits given up by their caller.", stats.interrupted);
	metric(out, "over_budget_total", "counter", "Misses of other users that were refused.",
	       bid_ratelimit_refused(&fs->ratelimit));
	metric(out, "remembered_absent", "gauge", "Answers remembered: no, or too large.", stats.negative_entries);
	metric(out, "flights", "gauge", "Downloads under way.", stats.downloads);
	metric(out, "waiters", "gauge", "Requests that wait for a download.", stats.waiters);
	metric(out, "not_passed_through_total", "counter", "Opens that the kernel was to read with passthrough, and did not take.",
	       bid_backings_refused(fs->backings, &error));
	metric(out, "offline", "gauge", "Is no server asked, as the mount was told?", bid_fs_is_offline(fs));
	metric(out, "inodes", "gauge", "Inodes that the kernel holds.", bid_inodes_count(fs->inodes));
	per_source(out, fs->broker);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
