// SPDX-License-Identifier: LGPL-2.1-or-later
/* .bidfs/metrics, in the text format of Prometheus. */
#include <stdio.h>
#include <stdlib.h>

#include "text.h"

static void metric(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	fprintf(out, "# HELP bidfs_%s %s\n# TYPE bidfs_%s %s\nbidfs_%s %llu\n", name, help, name, type, name,
		(unsigned long long)value);
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

static void per_source(FILE *out, struct bid_broker *broker)
{
	struct bid_source_stats stats;

	fputs("# HELP bidfs_source_answers_total Answers of a source, by outcome.\n# TYPE bidfs_source_answers_total counter\n",
	      out);
	for (size_t i = 0; bid_broker_source_stats(broker, i, &stats) == 0; i++) {
		for (int outcome = BID_OUTCOME_NONE + 1; outcome < BID_OUTCOME_COUNT; outcome++) {
			fputs("bidfs_source_answers_total{source=\"", out);
			label(out, stats.name);
			fprintf(out, "\",outcome=\"%s\"} %llu\n", bid_outcome_name((enum bid_outcome)outcome),
				(unsigned long long)stats.outcomes[outcome]);
		}
	}
	fputs("# HELP bidfs_source_bytes_total Bytes received from a source.\n# TYPE bidfs_source_bytes_total counter\n", out);
	for (size_t i = 0; bid_broker_source_stats(broker, i, &stats) == 0; i++) {
		fputs("bidfs_source_bytes_total{source=\"", out);
		label(out, stats.name);
		fprintf(out, "\"} %llu\n", (unsigned long long)stats.bytes);
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
	metric(out, "hits_total", "counter", "Requests answered from the store.", stats.hits);
	metric(out, "fetched_total", "counter", "Artifacts fetched, checked and published.", stats.fetched);
	metric(out, "absent_total", "counter", "Requests answered as absent.", stats.absent);
	metric(out, "unknown_total", "counter", "Requests that timed out or whose sources could not be asked.", stats.unknown);
	metric(out, "rejected_total", "counter", "Bodies that were not what was asked for.", stats.rejected);
	metric(out, "interrupted_total", "counter", "Waits given up by their caller.", stats.interrupted);
	metric(out, "remembered_absent", "gauge", "Artifacts remembered as absent.", stats.negative_entries);
	metric(out, "flights", "gauge", "Downloads under way.", stats.flights);
	metric(out, "waiters", "gauge", "Requests that wait for a download.", stats.waiters);
	metric(out, "inodes", "gauge", "Inodes that the kernel holds.", bid_inodes_count(fs->inodes));
	per_source(out, fs->broker);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
