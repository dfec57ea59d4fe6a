// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/story.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bid/error.h>

#include "base/json.h"
#include "base/log.h"
#include "ctl/output.h"

struct ctl_answer {
	char *source, *text, *url, *led_to, *before; /* owned; the last three may be NULL */
	enum bid_outcome outcome;
	unsigned attempts;
	uint64_t bytes, received;
	unsigned elapsed_ms;
	int64_t time; /* time of a response that the mount reports, in seconds since the epoch; 0 if unknown */
	unsigned again_s; /* remaining seconds until the next retry, also from the mount */
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

/* Add @answer, and take ownership. Returns false without memory. */
static bool add(struct ctl_story *story, struct ctl_answer *answer)
{
	struct ctl_answer *answers = NULL;

	if (answer->source && answer->text)
		answers = reallocarray(story->answers, story->n + 1, sizeof(*answers));
	if (!answers) {
		answer_release(answer);
		return false;
	}
	story->answers = answers;
	answers[story->n++] = *answer;
	return true;
}

void ctl_story_take(struct ctl_story *story, const struct bid_result *result)
{
	bool added = true;

	story->waited_ms = result->waited_ms;
	for (size_t i = 0; i < result->n_reports; i++)
		story->changed |= result->reports[i]->changed;
	for (size_t i = 0; added && i < result->n_reports; i++) {
		const struct bid_report *from = result->reports[i];
		struct ctl_answer answer = {
			.source = strdup(from->source),
			.text = strdup(from->text ? from->text : ""),
			.url = copy_of(from->url),
			.led_to = copy_of(from->led_to),
			.before = copy_of(from->before),
			.outcome = from->outcome,
			.attempts = from->attempts,
			.bytes = from->bytes,
			.received = from->received,
			.elapsed_ms = from->elapsed_ms,
		};

		added = add(story, &answer);
	}
}

void ctl_story_recall(struct ctl_story *story, const char *source, unsigned again_s)
{
	struct ctl_answer answer = { .outcome = BID_OUTCOME_ABSENT, .again_s = again_s };

	if (again_s == 0)
		return;
	answer.source = strdup(source);
	answer.text = strdup("as it said before");
	add(story, &answer);
}

static char *text_in(const json_t *json, const char *name)
{
	return copy_of(json_string_value(json_object_get(json, name)));
}

static uint64_t number_in(const json_t *json, const char *name)
{
	json_int_t number = json_integer_value(json_object_get(json, name));

	return number > 0 ? (uint64_t)number : 0;
}

static enum bid_outcome outcome_in(const json_t *json)
{
	const char *name = json_string_value(json_object_get(json, "outcome"));
	int outcome = BID_OUTCOME_NONE;

	while (name && ++outcome < BID_OUTCOME_COUNT)
		if (strcmp(bid_outcome_name((enum bid_outcome)outcome), name) == 0)
			return (enum bid_outcome)outcome;
	return BID_OUTCOME_NONE;
}

static bool is_of(const json_t *json, const struct bid_request *request)
{
	const char *kind = json_string_value(json_object_get(json, "kind"));
	const char *name = json_string_value(json_object_get(json, "name"));

	return kind && strcmp(kind, bid_kind_name(request->kind)) == 0 &&
	       strcmp(name ? name : "", bid_detail_text(request->detail)) == 0;
}

void ctl_story_take_responses(struct ctl_story *story, const json_t *responses, const struct bid_request *request)
{
	bool added = true;

	story->of_mount = true;
	for (size_t i = 0; added && i < json_array_size(responses); i++) {
		const json_t *from = json_array_get(responses, i);
		struct ctl_answer answer = { .outcome = outcome_in(from) };

		if (!is_of(from, request))
			continue;
		answer.source = text_in(from, "source");
		answer.text = text_in(from, "text");
		answer.url = text_in(from, "url");
		answer.led_to = text_in(from, "redirect");
		answer.before = text_in(from, "before");
		answer.attempts = (unsigned)number_in(from, "attempts");
		answer.bytes = number_in(from, "bytes");
		answer.received = number_in(from, "received");
		answer.elapsed_ms = (unsigned)number_in(from, "elapsed_ms");
		answer.time = (int64_t)number_in(from, "time");
		answer.again_s = (unsigned)number_in(from, "retry_s");
		added = add(story, &answer);
	}
}

bool ctl_story_all_said_no(const struct ctl_story *story, size_t servers)
{
	size_t n = 0;

	for (size_t i = 0; i < story->n; i++)
		n += story->answers[i].outcome == BID_OUTCOME_ABSENT && story->answers[i].again_s > 0;
	return n >= servers;
}

/* Did the server of the @index-th response have another request? */
static bool asked_for_more(const struct ctl_story *story, size_t index)
{
	for (size_t i = 0; i < story->n; i++)
		if (i != index && strcmp(story->answers[i].source, story->answers[index].source) == 0)
			return true;
	return false;
}

enum { ATTEMPTS_TEXT_MAX = 32 };

/* Format " in 3 attempts", or "" for a single one. Returns @buf. */
static const char *in_attempts(const struct ctl_answer *answer, char buf[static ATTEMPTS_TEXT_MAX])
{
	*buf = '\0';
	if (answer->attempts > 1)
		snprintf(buf, ATTEMPTS_TEXT_MAX, " in %u attempts", answer->attempts);
	return buf;
}

void ctl_story_complain(const struct ctl_story *story)
{
	for (size_t i = 0; i < story->n; i++) {
		const struct ctl_answer *answer = &story->answers[i];
		bool url = answer->url && asked_for_more(story, i);
		char attempts[ATTEMPTS_TEXT_MAX];

		bid_error_about(url ? answer->url : answer->source, 0, "%s%s: %s: server '%s'", bid_outcome_name(answer->outcome),
				in_attempts(answer, attempts), answer->text, url ? answer->url : answer->source);
	}
}

static json_t *json_of(const struct ctl_answer *answer)
{
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I}", "server", bid_json_text(answer->source), "state",
			 bid_outcome_name(answer->outcome), "reason", bid_json_text(answer->text), "url",
			 bid_json_text(answer->url), "redirect", bid_json_text(answer->led_to), "attempts",
			 (json_int_t)answer->attempts, "before", bid_json_text(answer->before), "bytes", (json_int_t)answer->bytes,
			 "received", (json_int_t)answer->received, "elapsed_ms", (json_int_t)answer->elapsed_ms);
}

json_t *ctl_story_servers(const struct ctl_story *story)
{
	json_t *servers = json_array();

	for (size_t i = 0; i < story->n; i++) {
		const struct ctl_answer *answer = &story->answers[i];
		json_t *json = json_of(answer);

		if (story->of_mount) {
			json_object_set_new(json, "time", json_integer((json_int_t)answer->time));
			json_object_set_new(json, "retry_s", json_integer((json_int_t)answer->again_s));
		}
		json_array_append_new(servers, json);
	}
	return servers;
}

/* Print one step of the lookup. */
static void tell(const char *step, const char *text)
{
	fprintf(stderr, "  %s%-10s%s ", ctl_colour(stderr, CTL_BOLD), step, ctl_colour(stderr, CTL_PLAIN));
	ctl_print_text(stderr, text);
	putc('\n', stderr);
}

/* Print the time of a response to the mount, and of the retry. */
static void tell_when(const struct ctl_answer *answer)
{
	long long ago = (long long)(time(NULL) - answer->time);
	char text[128];
	int len = 0;

	if (answer->time)
		len = snprintf(text, sizeof(text), "that was %lld s ago", ago > 0 ? ago : 0);
	if (answer->again_s)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%sasked again in %u s, or with '--refresh'",
				len ? "; " : "", answer->again_s);
	if (len)
		tell("", text);
}

static void tell_answer(const struct ctl_answer *answer)
{
	char text[1024], attempts[ATTEMPTS_TEXT_MAX], size[CTL_SIZE_MAX], rate[CTL_SIZE_MAX];
	FILE *line = fmemopen(text, sizeof(text), "w");

	tell("asked", answer->source);
	if (answer->url)
		tell("", answer->url);
	if (answer->led_to)
		tell("led to", answer->led_to);
	if (!line)
		return;
	fputs(bid_outcome_name(answer->outcome), line);
	if (answer->attempts || answer->elapsed_ms || answer->url)
		fprintf(line, " after %u ms%s", answer->elapsed_ms, in_attempts(answer, attempts));
	fprintf(line, ": %s", answer->text);
	if (answer->received > 0)
		fprintf(line, ", %s", ctl_format_size(answer->received, size));
	if (answer->received > 0 && answer->elapsed_ms > 0)
		fprintf(line, ", %s/s", ctl_format_size(answer->received * 1000 / answer->elapsed_ms, rate));
	if (answer->before)
		fprintf(line, "; before: %s", answer->before);
	fclose(line);
	tell("", text);
	tell_when(answer);
}

/* bid_store_fact_fn */
static int tell_fact(void *user, const char *name, const char *value)
{
	if (strcmp(name, "digest") == 0)
		tell("digest", value);
	else if (strcmp(name, "signer") == 0)
		tell("signed by", value);
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
	case -EFBIG:
	case -EOPNOTSUPP:
		return "a packed file is there that cannot be unpacked";
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
	if (story->stored == 0 && path && strncmp(path, bid_store_path(store), strlen(bid_store_path(store))) != 0)
		tell("lower", path);
	else
		tell("", what_was_stored(story->stored));
	if (story->remembered_s) {
		snprintf(text, sizeof(text), "that no server has it; they are asked again in %u s", story->remembered_s);
		tell("remembered", text);
	}
	if (story->waited_ms) {
		snprintf(text, sizeof(text), "%u ms for another process that was fetching it", story->waited_ms);
		tell("waited", text);
	}
	if (story->of_mount && story->n == 0 && error < 0)
		tell("asked", "what servers said to the mount that covers the store is not known");
	for (size_t i = 0; i < story->n; i++)
		tell_answer(&story->answers[i]);
	if (error == 0 && story->stored < 0) {
		tell("checked", what_was_checked(store, request));
		bid_store_each_fact(store, request, tell_fact, NULL);
		tell("published", path);
	}
}
