// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/story.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "base/log.h"
#include "ctl/output.h"

struct ctl_answer {
	char *source, *text, *url; /* owned; url may be NULL */
	enum bid_outcome outcome;
	uint64_t bytes;
	unsigned elapsed_ms;
};

void ctl_story_release(struct ctl_story *story)
{
	for (size_t i = 0; i < story->n; i++) {
		free(story->answers[i].source);
		free(story->answers[i].text);
		free(story->answers[i].url);
	}
	free(story->answers);
	story->answers = NULL;
	story->n = 0;
}

void ctl_story_take(struct ctl_story *story, const struct bid_result *result)
{
	story->waited_ms = result->waited_ms;
	for (size_t i = 0; i < result->n_verdicts; i++)
		story->changed |= result->verdicts[i].changed;
	if (result->n_verdicts > 0)
		story->answers = calloc(result->n_verdicts, sizeof(*story->answers));
	for (size_t i = 0; story->answers && i < result->n_verdicts; i++) {
		const struct bid_verdict *from = &result->verdicts[i];
		struct ctl_answer answer = {
			.source = strdup(from->source),
			.text = strdup(from->text ? from->text : ""),
			.url = from->url ? strdup(from->url) : NULL,
			.outcome = from->outcome,
			.bytes = from->bytes,
			.elapsed_ms = from->elapsed_ms,
		};

		if (!answer.source || !answer.text) {
			free(answer.source);
			free(answer.text);
			free(answer.url);
			return;
		}
		story->answers[story->n++] = answer;
	}
}

/* Was the server of the @index-th answer asked for anything else, too? */
static bool asked_for_more(const struct ctl_story *story, size_t index)
{
	for (size_t i = 0; i < story->n; i++)
		if (i != index && strcmp(story->answers[i].source, story->answers[index].source) == 0)
			return true;
	return false;
}

void ctl_story_complain(const struct ctl_story *story)
{
	for (size_t i = 0; i < story->n; i++) {
		const struct ctl_answer *answer = &story->answers[i];
		bool url = answer->url && asked_for_more(story, i);

		bid_error("%s: %s: server '%s'", bid_outcome_name(answer->outcome), answer->text,
			  url ? answer->url : answer->source);
	}
}

json_t *ctl_story_servers(const struct ctl_story *story)
{
	json_t *servers = json_array();

	for (size_t i = 0; i < story->n; i++) {
		const struct ctl_answer *answer = &story->answers[i];

		json_array_append_new(servers, json_pack("{s:o, s:s, s:o, s:o, s:I, s:I}", "name", ctl_json_text(answer->source),
							 "outcome", bid_outcome_name(answer->outcome), "text",
							 ctl_json_text(answer->text), "url", ctl_json_text(answer->url), "bytes",
							 (json_int_t)answer->bytes, "elapsed_ms", (json_int_t)answer->elapsed_ms));
	}
	return servers;
}

/* A step, and what there is to say of it. */
static void tell(const char *step, const char *text)
{
	fprintf(stderr, "  %s%-10s%s ", ctl_colour(stderr, CTL_BOLD), step, ctl_colour(stderr, CTL_PLAIN));
	ctl_print_text(stderr, text);
	putc('\n', stderr);
}

static void tell_answer(const struct ctl_answer *answer)
{
	char text[512], size[CTL_SIZE_MAX], rate[CTL_SIZE_MAX];
	size_t at;

	tell("asked", answer->source);
	if (answer->url)
		tell("", answer->url);
	snprintf(text, sizeof(text), "%s after %u ms: %s", bid_outcome_name(answer->outcome), answer->elapsed_ms, answer->text);
	at = strlen(text);
	if (answer->bytes > 0)
		snprintf(text + at, sizeof(text) - at, ", %s", ctl_format_size(answer->bytes, size));
	at = strlen(text);
	if (answer->bytes > 0 && answer->elapsed_ms > 0)
		snprintf(text + at, sizeof(text) - at, ", %s/s", ctl_format_size(answer->bytes * 1000 / answer->elapsed_ms, rate));
	tell("", text);
}

/* bid_store_fact_fn */
static int tell_digest(void *user, const char *name, const char *value)
{
	if (strcmp(name, "digest") == 0)
		tell("digest", value);
	return 0;
}

/* bid_store_fact_fn */
static int is_fetched(void *user, const char *name, const char *value)
{
	return strcmp(name, "how") == 0 && strcmp(value, "fetched") == 0;
}

static const char *what_was_checked(struct bid_store *store, const struct bid_request *request)
{
	if (request->kind == BID_KIND_DEBUGINFO)
		return "whole, of this build, with debug information or symbols";
	if (!bid_kind_has_detail(request->kind))
		return "whole, and of this build";
	if (bid_store_each_fact(store, request, is_fetched, NULL) > 0)
		return "its size; nothing in it says of which build it is";
	return "the file of this build that it was cut out of";
}

static const char *what_was_stored(int error)
{
	switch (error) {
	case 0:
		return "it is there";
	case -ENOENT:
		return "it is not there";
	case -ENODATA:
		return "the files of the build are there, without it";
	case -EBADMSG:
		return "a file of that name is there, which is another build, or damaged";
	default:
		return bid_strerror(error);
	}
}

void ctl_story_tell(const struct ctl_story *story, struct bid_store *store, const struct bid_request *request, int error,
		    const char *path)
{
	char hex[BID_ID_HEX_MAX], text[128];

	fprintf(stderr, "%s%s", bid_kind_name(request->kind), request->detail ? " " : "");
	ctl_print_text(stderr, bid_detail_text(request->detail));
	fprintf(stderr, " of %s\n", bid_id_format(&request->id, hex));
	tell("store", bid_store_path(store));
	tell("", what_was_stored(story->stored));
	if (story->remembered_s) {
		snprintf(text, sizeof(text), "that no server has it; they are asked again in %u s", story->remembered_s);
		tell("remembered", text);
	}
	if (story->waited_ms) {
		snprintf(text, sizeof(text), "%u ms for another process that was fetching it", story->waited_ms);
		tell("waited", text);
	}
	for (size_t i = 0; i < story->n; i++)
		tell_answer(&story->answers[i]);
	if (error == 0 && story->stored < 0) {
		tell("checked", what_was_checked(store, request));
		bid_store_each_fact(store, request, tell_digest, NULL);
		tell("published", path);
	}
}
