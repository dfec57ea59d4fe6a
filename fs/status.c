// SPDX-License-Identifier: LGPL-2.1-or-later
/* .bidfs/status, and the attribute user.bidfs.responses: JSON, as in docs/FORMAT.md. */
#include <jansson.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bid/version.h>

#include "base/json.h"
#include "sandbox/sandbox.h"
#include "synthetic.h"

static json_t *counters_json(const struct bid_broker_stats *stats, uint64_t rate_limited)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "hits", (json_int_t)stats->hits, "fetched",
			 (json_int_t)stats->fetched, "absent", (json_int_t)stats->absent, "unknown", (json_int_t)stats->unknown,
			 "rejected", (json_int_t)stats->rejected, "interrupted", (json_int_t)stats->interrupted, "negative_entries",
			 (json_int_t)stats->negative_entries, "rate_limited", (json_int_t)rate_limited);
}

static void add_health(json_t *json, const struct bid_server_health *health)
{
	json_object_set_new(json, "breaker", json_string(bid_breaker_state_name(health->breaker)));
	json_object_set_new(json, "failures_in_a_row", json_integer((json_int_t)health->failures));
	if (health->breaker == BID_BREAKER_OPEN)
		json_object_set_new(json, "next_trial_s", json_integer((json_int_t)health->next_trial_s));
	if (health->latency_ms)
		json_object_set_new(json, "latency_ms", json_integer((json_int_t)health->latency_ms));
	if (health->protocol)
		json_object_set_new(json, "protocol", json_string(health->protocol));
	if (health->last_failure[0])
		json_object_set_new(json, "last_failure", bid_json_text(health->last_failure));
}

static json_t *servers_json(struct bid_broker *broker)
{
	json_t *all = json_array();
	struct bid_server_stats stats;

	for (size_t i = 0; bid_broker_server_stats(broker, i, &stats) == 0; i++) {
		json_t *one = json_pack("{s:s, s:I, s:I}", "name", stats.name, "requests", (json_int_t)stats.requests, "bytes",
					(json_int_t)stats.bytes);

		for (int outcome = BID_OUTCOME_NONE + 1; outcome < BID_OUTCOME_COUNT; outcome++)
			if (stats.outcomes[outcome])
				json_object_set_new(one, bid_outcome_name((enum bid_outcome)outcome),
						    json_integer((json_int_t)stats.outcomes[outcome]));
		if (stats.enforces)
			json_object_set_new(one, "ima", json_string("enforcing"));
		if (*stats.signer)
			json_object_set_new(one, "signer", bid_json_text(stats.signer));
		add_health(one, &stats.health);
		json_object_set_new(one, "preferred", json_boolean(stats.preferred));
		json_array_append_new(all, one);
	}
	return all;
}

static int add_download(void *user, const struct bid_progress *progress)
{
	char hex[BID_ID_HEX_MAX];
	json_t *one = json_pack("{s:s, s:s, s:I, s:i, s:i}", "id", bid_id_format(&progress->artifact.id, hex), "kind",
				bid_kind_name(progress->artifact.kind), "received", (json_int_t)progress->received, "waiters",
				(int)progress->waiters, "age_ms", (int)progress->age_ms);

	if (progress->size != BID_SIZE_UNKNOWN)
		json_object_set_new(one, "size", json_integer((json_int_t)progress->size));
	if (progress->subpath[0])
		json_object_set_new(one, "name", bid_json_text(progress->subpath));
	if (progress->server[0])
		json_object_set_new(one, "server", bid_json_text(progress->server));
	json_array_append_new(user, one);
	return 0;
}

static int add_failure(void *user, const struct bid_report *failure, unsigned again_s)
{
	char hex[BID_ID_HEX_MAX];

	json_array_append_new(user,
			      json_pack("{s:s, s:s, s:o, s:s, s:s, s:I, s:I, s:I}", "server", failure->server, "outcome",
					bid_outcome_name(failure->outcome), "text", bid_json_text(failure->text), "id",
					bid_id_format(&failure->artifact.id, hex), "kind", bid_kind_name(failure->artifact.kind),
					"count", (json_int_t)failure->count, "first_time", (json_int_t)failure->first_time,
					"last_time", (json_int_t)failure->time));
	return 0;
}

/* The reason against a better mode, or the number of files that the kernel refused; "" without either. */
static json_t *mode_reason_json(const struct bid_fs *fs)
{
	uint64_t refused = fs->refused;

	if (refused == 0)
		return json_string(fs->mode_reason);
	return json_sprintf("except %llu opens of files that the kernel refused: %s", (unsigned long long)refused,
			    strerror(fs->refused_error));
}

char *bid_status_json(const struct bid_fs *fs)
{
	struct bid_broker_stats stats;
	json_t *downloads = json_array(), *failures = json_array();
	struct stat root;
	json_t *json;
	char *text;

	bid_broker_stats(fs->broker, &stats);
	bid_broker_each_download(fs->broker, add_download, downloads);
	bid_broker_each_failure(fs->broker, add_failure, failures);
	json = json_pack("{s:s, s:o, s:o, s:s, s:o, s:b, s:b, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "version",
			 bid_version(), "mount_point", bid_json_text(fs->options->mountpoint), "store",
			 bid_json_text(bid_store_path(fs->store)), "mode", bid_mode_name(fs->mode), "mode_reason",
			 mode_reason_json(fs), "read_only", !fs->writable, "offline", bid_fs_is_offline(fs), "require",
			 fs->options->require_signed ? "signed" : "any", "sandbox", bid_sandbox_state(fs->sandbox),
			 "sandbox_reason", bid_sandbox_reason(fs->sandbox), "uptime_s",
			 (json_int_t)(time(NULL) - fs->started.tv_sec), "inodes", (json_int_t)bid_inodes_count(fs->inodes),
			 "counters", counters_json(&stats, fs->ratelimit.refused), "servers", servers_json(fs->broker), "downloads",
			 downloads, "failures", failures);
	if (bid_store_stat_path(fs->store, ".", &root) == 0 && root.st_nlink == 0)
		json_object_set_new(json, "store_removed", json_true());
	text = bid_json_dump(json, JSON_INDENT(2));
	json_decref(json);
	return text;
}

static void add_text(json_t *json, const char *name, const char *text)
{
	if (text)
		json_object_set_new(json, name, bid_json_text(text));
}

/* bid_report_fn */
static int add_response(void *user, const struct bid_report *report, unsigned again_s)
{
	json_t *one = json_pack("{s:s, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "kind", bid_kind_name(report->artifact.kind),
				"server", bid_json_text(report->server), "outcome", bid_outcome_name(report->outcome), "text",
				bid_json_text(report->text), "requests", (json_int_t)report->requests, "bytes",
				(json_int_t)report->bytes, "received", (json_int_t)report->received, "elapsed_ms",
				(json_int_t)report->elapsed_ms, "time", (json_int_t)report->time, "retry_s", (json_int_t)again_s);

	if (report->artifact.subpath)
		add_text(one, "name", bid_subpath_text(report->artifact.subpath));
	add_text(one, "url", report->url);
	add_text(one, "redirect", report->redirect);
	add_text(one, "before", report->before);
	json_array_append_new(user, one);
	return 0;
}

char *bid_responses_json(const struct bid_fs *fs, const struct bid_id *id)
{
	json_t *all = json_array();
	char *text = NULL;

	bid_broker_each_report(fs->broker, id, add_response, all);
	while (json_array_size(all) > 0) {
		text = bid_json_dump(all, JSON_COMPACT);
		if (!text || strlen(text) <= XATTR_SIZE_MAX)
			break;
		free(text);
		text = NULL;
		json_array_remove(all, json_array_size(all) - 1);
	}
	json_decref(all);
	return text;
}
