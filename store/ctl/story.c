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
	char *source, *text, *url, *led_to, *before; /* owned; the last three may be NULL */
	enum bid_outcome outcome;
	unsigned tries;
	uint64_t bytes, received;
	unsigned elapsed_ms;
};

static void answer_release(struct ctl_answer *answer)
{
	free(answer->source);
	free(answer->text);
	free(answer->url);
	free(answer->led_to);
	free(answer->before);
}

void ctl_story_release(struct ctl_story *story)
{
	for (size_t i = 0; i < story->n; i++)
		answer_release(&story->answers[i]);
	free(story->answers);
	story->answers = NULL;
	story->n = 0;
}

static char *copy_of(const char *text)
{
	return text ? strdup(text) : NULL;
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
			.url = copy_of(from->url),
			.led_to = copy_of(from->led_to),
			.before = copy_of(from->before),
			.outcome = from->outcome,
			.tries = from->tries,
			.bytes = from->bytes,
			.received = from->received,
			.elapsed_ms = from->elapsed_ms,
		};

		if (!answer.source || !answer.text) {
			answer_release(&answer);
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

enum { TRIES_MAX = 32 };

/* " in 3 tries", or nothing for a single one. Returns @buf. */
static const char *in_tries(const struct ctl_answer *answer, char buf[static TRIES_MAX])
{
	*buf = '\0';
	if (answer->tries > 1)
		snprintf(buf, TRIES_MAX, " in %u tries", answer->tries);
	return buf;
}

void ctl_story_complain(const struct ctl_story *story)
{
	for (size_t i = 0; i < story->n; i++) {
		const struct ctl_answer *answer = &story->answers[i];
		bool url = answer->url && asked_for_more(story, i);
		char tries[TRIES_MAX];

		bid_error("%s%s: %s: server '%s'", bid_outcome_name(answer->outcome), in_tries(answer, tries), answer->text,
			  url ? answer->url : answer->source);
	}
}

json_t *ctl_story_servers(const struct ctl_story *story)
{
	json_t *servers = json_array();

	for (size_t i = 0; i < story->n; i++) {
		const struct ctl_answer *answer = &story->answers[i];

		json_array_append_new(servers,
				      json_pack("{s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I}", "name",
						ctl_json_text(answer->source), "outcome", bid_outcome_name(answer->outcome), "text",
						ctl_json_text(answer->text), "url", ctl_json_text(answer->url), "led_to",
						ctl_json_text(answer->led_to), "tries", (json_int_t)answer->tries, "before",
						ctl_json_text(answer->before), "bytes", (json_int_t)answer->bytes, "received",
						(json_int_t)answer->received, "elapsed_ms", (json_int_t)answer->elapsed_ms));
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
	char text[1024], tries[TRIES_MAX], size[CTL_SIZE_MAX], rate[CTL_SIZE_MAX];
	size_t at;

	tell("asked", answer->source);
	if (answer->url)
		tell("", answer->url);
	if (answer->led_to)
		tell("led to", answer->led_to);
	snprintf(text, sizeof(text), "%s after %u ms%s: %s", bid_outcome_name(answer->outcome), answer->elapsed_ms,
		 in_tries(answer, tries), answer->text);
	at = strlen(text);
	if (answer->received > 0)
		snprintf(text + at, sizeof(text) - at, ", %s", ctl_format_size(answer->received, size));
	at = strlen(text);
	if (answer->received > 0 && answer->elapsed_ms > 0)
		snprintf(text + at, sizeof(text) - at, ", %s/s",
			 ctl_format_size(answer->received * 1000 / answer->elapsed_ms, rate));
	at = strlen(text);
	if (answer->before)
		snprintf(text + at, sizeof(text) - at, "; before: %s", answer->before);
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
