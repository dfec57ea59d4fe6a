// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/last_response.h"

#include <jansson.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static int stop_at_first(void *user, const struct bid_report *report, unsigned again_s)
{
	return 1;
}

bool bid_last_response_any(struct bid_fs *fs, const struct bid_id *id)
{
	return bid_broker_each_response(fs->broker, id, stop_at_first, NULL) > 0;
}

static void add_text(json_t *json, const char *name, const char *text)
{
	if (text)
		json_object_set_new(json, name, bid_json_text(text));
}

/* bid_report_fn */
static int add_response(void *user, const struct bid_report *report, unsigned again_s)
{
	json_t *one = json_pack("{s:s, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "kind", bid_kind_name(report->request.kind),
				"source", bid_json_text(report->source), "outcome", bid_outcome_name(report->outcome), "text",
				bid_json_text(report->text), "attempts", (json_int_t)report->attempts, "bytes",
				(json_int_t)report->bytes, "received", (json_int_t)report->received, "elapsed_ms",
				(json_int_t)report->elapsed_ms, "time", (json_int_t)report->time, "retry_s", (json_int_t)again_s);

	if (report->request.detail)
		add_text(one, "name", bid_detail_text(report->request.detail));
	add_text(one, "url", report->url);
	add_text(one, "redirect", report->led_to);
	add_text(one, "before", report->before);
	json_array_append_new(user, one);
	return 0;
}

char *bid_last_response_json(struct bid_fs *fs, const struct bid_id *id)
{
	json_t *all = json_array();
	char *text = NULL;

	bid_broker_each_response(fs->broker, id, add_response, all);
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
