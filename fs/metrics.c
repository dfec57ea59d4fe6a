// SPDX-License-Identifier: LGPL-2.1-or-later
/* .bidfs/metrics, in the text format of Prometheus. */
#include <stdio.h>
#include <stdlib.h>

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

/* Begin a sample of @stats, "bidfs_NAME{server="..."". More labels, a brace and a value may follow. */
static void begin_sample(FILE *out, const char *name, const struct bid_server_stats *stats)
{
	fprintf(out, "bidfs_%s{server=\"", name);
	write_label(out, stats->name);
	fputc('"', out);
}

static void write_responses(FILE *out, const struct bid_server_stats *stats)
{
	for (int outcome = BID_OUTCOME_NONE + 1; outcome < BID_OUTCOME_COUNT; outcome++) {
		begin_sample(out, "server_responses_total", stats);
		fprintf(out, ",outcome=\"%s\"} %llu\n", bid_outcome_name((enum bid_outcome)outcome),
			(unsigned long long)stats->outcomes[outcome]);
	}
}

static void write_bytes(FILE *out, const struct bid_server_stats *stats)
{
	begin_sample(out, "server_bytes_total", stats);
	fprintf(out, "} %llu\n", (unsigned long long)stats->bytes);
}

static void write_breaker(FILE *out, const struct bid_server_stats *stats)
{
	begin_sample(out, "server_breaker_open", stats);
	fprintf(out, "} %d\n", stats->health.breaker != BID_BREAKER_CLOSED);
}

/* A server without a response has no latency. */
static void write_latency(FILE *out, const struct bid_server_stats *stats)
{
	if (stats->health.latency_ms == 0)
		return;
	begin_sample(out, "server_latency_seconds", stats);
	fprintf(out, "} %u.%03u\n", stats->health.latency_ms / 1000, stats->health.latency_ms % 1000);
}

/* The format wants all samples of a metric together. */
static void write_server_metrics(FILE *out, struct bid_broker *broker)
{
	static const struct {
		const char *name, *type, *help;
		void (*write)(FILE *out, const struct bid_server_stats *stats);
	} metrics[] = {
		{ "server_responses_total", "counter", "Responses of a server, by outcome.", write_responses },
		{ "server_bytes_total", "counter", "Bytes received from a server.", write_bytes },
		{ "server_latency_seconds", "gauge", "Time to the headers of a response, moving average.", write_latency },
		{ "server_breaker_open", "gauge", "Circuit breaker of a server: 1 is open or half-open.", write_breaker },
	};
	struct bid_server_stats stats;

	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		write_head(out, metrics[i].name, metrics[i].type, metrics[i].help);
		for (size_t at = 0; bid_broker_server_stats(broker, at, &stats) == 0; at++)
			metrics[i].write(out, &stats);
	}
}

char *bid_metrics_text(const struct bid_fs *fs)
{
	struct bid_broker_stats stats;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	bid_broker_stats(fs->broker, &stats);
	write_metric(out, "hits_total", "counter", "Requests answered from the store.", stats.hits);
	write_metric(out, "fetched_total", "counter", "Artifacts fetched, checked and published.", stats.fetched);
	write_metric(out, "absent_total", "counter", "Requests answered as absent.", stats.absent);
	write_metric(out, "unknown_total", "counter", "Requests without a definite response.", stats.unknown);
	write_metric(out, "rejected_total", "counter", "Downloads with wrong content.", stats.rejected);
	write_metric(out, "interrupted_total", "counter", "Requests interrupted by their caller.", stats.interrupted);
	write_metric(out, "rate_limited_total", "counter", "Cache misses over miss_rate=, refused.", fs->ratelimit.refused);
	write_metric(out, "negative_entries", "gauge", "Negative cache entries.", stats.negative_entries);
	write_metric(out, "downloads", "gauge", "Downloads in flight.", stats.downloads);
	write_metric(out, "waiters", "gauge", "Requests waiting for a download.", stats.waiters);
	write_metric(out, "not_passed_through_total", "counter", "Opens without passthrough, refused by the kernel.", fs->refused);
	write_metric(out, "offline", "gauge", "1 if servers get no requests.", bid_fs_is_offline(fs));
	write_metric(out, "inodes", "gauge", "Inodes held by the kernel.", bid_inodes_count(fs->inodes));
	write_server_metrics(out, fs->broker);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
