// SPDX-License-Identifier: LGPL-2.1-or-later
/* .bidfs/metrics, in the text format of Prometheus. */
#include <stdio.h>
#include <stdlib.h>

#include "fuse/backing.h"
#include "synthetic.h"

static void write_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP bidfs_%s %s\n# TYPE bidfs_%s %s\n", name, help, name, type);
}

static void write_metric(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	write_head(out, name, type, help);
	fprintf(out, "bidfs_%s %llu\n", name, (unsigned long long)value);
}

/* Write the value of a label, with backslash, quote and newline escaped. */
static void write_label(FILE *out, const char *value)
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

/* Begin a sample of @stats, "bidfs_NAME{source="..."". More labels, a brace and a value may follow. */
static void begin_sample(FILE *out, const char *name, const struct bid_source_stats *stats)
{
	fprintf(out, "bidfs_%s{source=\"", name);
	write_label(out, stats->name);
	fputc('"', out);
}

static void write_answers(FILE *out, const struct bid_source_stats *stats)
{
	for (int outcome = BID_OUTCOME_NONE + 1; outcome < BID_OUTCOME_COUNT; outcome++) {
		begin_sample(out, "source_answers_total", stats);
		fprintf(out, ",outcome=\"%s\"} %llu\n", bid_outcome_name((enum bid_outcome)outcome),
			(unsigned long long)stats->outcomes[outcome]);
	}
}

static void write_bytes(FILE *out, const struct bid_source_stats *stats)
{
	begin_sample(out, "source_bytes_total", stats);
	fprintf(out, "} %llu\n", (unsigned long long)stats->bytes);
}

static void write_kept_from(FILE *out, const struct bid_source_stats *stats)
{
	begin_sample(out, "source_kept_from_total", stats);
	fprintf(out, "} %llu\n", (unsigned long long)stats->health.refused);
}

static void write_breaker(FILE *out, const struct bid_source_stats *stats)
{
	begin_sample(out, "source_breaker_open", stats);
	fprintf(out, "} %d\n", stats->health.breaker != BID_BREAKER_CLOSED);
}

/* A source without an answer has no latency. */
static void write_latency(FILE *out, const struct bid_source_stats *stats)
{
	if (stats->health.latency_ms == 0)
		return;
	begin_sample(out, "source_latency_seconds", stats);
	fprintf(out, "} %u.%03u\n", stats->health.latency_ms / 1000, stats->health.latency_ms % 1000);
}

/* The format wants all samples of a metric together. */
static void write_source_metrics(FILE *out, struct bid_broker *broker)
{
	static const struct {
		const char *name, *type, *help;
		void (*write)(FILE *out, const struct bid_source_stats *stats);
	} metrics[] = {
		{ "source_answers_total", "counter", "Answers of a source, by outcome.", write_answers },
		{ "source_bytes_total", "counter", "Bytes received from a source.", write_bytes },
		{ "source_kept_from_total", "counter", "Requests that were kept from a source because its breaker was open.",
		  write_kept_from },
		{ "source_latency_seconds", "gauge", "From a request to the header of its answer, moving average.", write_latency },
		{ "source_breaker_open", "gauge", "Is a source left alone for a while, because it failed?", write_breaker },
	};
	struct bid_source_stats stats;

	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		write_head(out, metrics[i].name, metrics[i].type, metrics[i].help);
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
	write_metric(out, "hits_total", "counter", "Requests answered from the store.", stats.hits);
	write_metric(out, "fetched_total", "counter", "Artifacts fetched, checked and published.", stats.fetched);
	write_metric(out, "absent_total", "counter", "Requests answered as absent.", stats.absent);
	write_metric(out, "unknown_total", "counter", "Requests that timed out or whose sources could not be asked.",
		     stats.unknown);
	write_metric(out, "rejected_total", "counter", "Bodies that were not what was asked for.", stats.rejected);
	write_metric(out, "interrupted_total", "counter", "Waits given up by their caller.", stats.interrupted);
	write_metric(out, "over_budget_total", "counter", "Misses of other users that were refused.",
		     bid_ratelimit_refused(&fs->ratelimit));
	write_metric(out, "remembered_absent", "gauge", "Answers remembered: no, or too large.", stats.negative_entries);
	write_metric(out, "flights", "gauge", "Downloads under way.", stats.downloads);
	write_metric(out, "waiters", "gauge", "Requests that wait for a download.", stats.waiters);
	write_metric(out, "not_passed_through_total", "counter",
		     "Opens that the kernel was to read with passthrough, and did not take.",
		     bid_backings_refused(fs->backings, &error));
	write_metric(out, "offline", "gauge", "Is no server asked, as the mount was told?", bid_fs_is_offline(fs));
	write_metric(out, "inodes", "gauge", "Inodes that the kernel holds.", bid_inodes_count(fs->inodes));
	write_source_metrics(out, fs->broker);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
