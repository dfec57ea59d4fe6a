// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lookup_trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <bid/error.h>

#include "base/json.h"
#include "base/log.h"
#include "ctl/output.h"

void ctl_trace_release(struct ctl_trace *trace)
{
	json_decref(bid_steal(trace->servers));
}

/* Add a response, and take ownership. Without memory for it, it is left out. */
static void add_response(struct ctl_trace *trace, json_t *response)
{
	if (!trace->servers)
		trace->servers = json_array();
	json_array_append_new(trace->servers, response);
}

void ctl_trace_add(struct ctl_trace *trace, const struct bid_result *result)
{
	trace->waited_ms = result->waited_ms;
	for (size_t i = 0; i < result->n_reports; i++) {
		const struct bid_report *from = result->reports[i];

		trace->changed |= from->changed;
		add_response(trace, json_pack("{s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I}", "server",
					      bid_json_text(from->server), "state", bid_outcome_name(from->outcome), "reason",
					      bid_json_text(from->text ? from->text : ""), "url", bid_json_text(from->url),
					      "redirect", bid_json_text(from->redirect), "requests", (json_int_t)from->requests,
					      "before", bid_json_text(from->before), "bytes", (json_int_t)from->bytes, "received",
					      (json_int_t)from->received, "elapsed_ms", (json_int_t)from->elapsed_ms));
	}
}

void ctl_trace_add_negative(struct ctl_trace *trace, const char *server, unsigned again_s)
{
	if (again_s > 0)
		add_response(trace, json_pack("{s:o, s:s, s:s, s:I}", "server", bid_json_text(server), "state",
					      bid_outcome_name(BID_OUTCOME_ABSENT), "reason", "same response earlier", "retry_s",
					      (json_int_t)again_s));
}

static bool is_of(const json_t *response, const struct bid_artifact *artifact)
{
	return strcmp(bid_json_string(response, "kind"), bid_kind_name(artifact->kind)) == 0 &&
	       strcmp(bid_json_string(response, "name"), bid_subpath_text(artifact->subpath)) == 0;
}

void ctl_trace_add_responses(struct ctl_trace *trace, const json_t *responses, const struct bid_artifact *artifact)
{
	/* keys here and in the report of a mount */
	static const char *const keys[][2] = {
		{ "server", "server" },	    { "state", "outcome" },	{ "reason", "text" },		{ "url", "url" },
		{ "redirect", "redirect" }, { "requests", "requests" }, { "before", "before" },		{ "bytes", "bytes" },
		{ "received", "received" }, { "time", "time" },		{ "elapsed_ms", "elapsed_ms" }, { "retry_s", "retry_s" },
	};

	trace->of_mount = true;
	for (size_t i = 0; i < json_array_size(responses); i++) {
		const json_t *from = json_array_get(responses, i);
		json_t *response = is_of(from, artifact) ? json_object() : NULL;

		for (size_t k = 0; response && k < sizeof(keys) / sizeof(keys[0]); k++) {
			json_t *value = json_object_get(from, keys[k][1]);

			json_object_set_new(response, keys[k][0], value ? json_incref(value) : json_null());
		}
		if (response)
			add_response(trace, response);
	}
}

bool ctl_trace_all_absent(const struct ctl_trace *trace, const json_t *servers)
{
	const json_t *response;
	size_t i, n = 0;

	json_array_foreach(trace->servers, i, response)
		n += strcmp(bid_json_string(response, "state"), "absent") == 0 && bid_json_number(response, "retry_s") > 0;
	return servers && n >= json_array_size(servers);
}

/* Did the server of @response have another request? */
static bool had_more_requests(const struct ctl_trace *trace, const json_t *response)
{
	const json_t *other;
	size_t i;

	json_array_foreach(trace->servers, i,
			   other) if (other != response && strcmp(bid_json_string(other, "server"),
								  bid_json_string(response, "server")) == 0) return true;
	return false;
}

enum { REQUESTS_TEXT_MAX = 48 };

/* Format " in 3 requests", or "" for a single one. Returns @buf. */
static const char *in_requests(const json_t *response, char buf[static REQUESTS_TEXT_MAX])
{
	json_int_t requests = bid_json_number(response, "requests");

	*buf = '\0';
	if (requests > 1)
		snprintf(buf, REQUESTS_TEXT_MAX, " in %" JSON_INTEGER_FORMAT " requests", requests);
	return buf;
}

void ctl_trace_print_errors(const struct ctl_trace *trace)
{
	const json_t *response;
	size_t i;

	json_array_foreach(trace->servers, i, response)
	{
		const char *url = bid_json_string(response, "url"), *server = bid_json_string(response, "server");
		const char *subject = *url && had_more_requests(trace, response) ? url : server;
		char requests[REQUESTS_TEXT_MAX];

		bid_error_about(subject, 0, "%s%s: %s: server '%s'", bid_json_string(response, "state"),
				in_requests(response, requests), bid_json_string(response, "reason"), subject);
	}
}

/* Print one step of the lookup. */
static void print_step(const char *step, const char *text)
{
	fprintf(stderr, "  %s%-10s%s ", ctl_colour(stderr, CTL_BOLD), step, ctl_colour(stderr, CTL_PLAIN));
	ctl_print_text(stderr, text);
	putc('\n', stderr);
}

/* Print the time of a response to the mount, and of the retry. */
static void print_time(const json_t *response)
{
	json_int_t when = bid_json_number(response, "time"), retry_s = bid_json_number(response, "retry_s");
	json_int_t ago = (json_int_t)time(NULL) - when;
	char text[128];
	int len = 0;

	if (when)
		len = snprintf(text, sizeof(text), "that was %" JSON_INTEGER_FORMAT " s ago", ago > 0 ? ago : 0);
	if (retry_s)
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				"%snext request in %" JSON_INTEGER_FORMAT " s, or with '--refresh'", len ? "; " : "", retry_s);
	if (len)
		print_step("", text);
}

static void print_response(const json_t *response)
{
	char text[1024], requests[REQUESTS_TEXT_MAX], size[CTL_SIZE_MAX], rate[CTL_SIZE_MAX];
	const char *url = bid_json_string(response, "url"), *redirect = bid_json_string(response, "redirect");
	const char *before = bid_json_string(response, "before");
	uint64_t received = (uint64_t)bid_json_number(response, "received");
	json_int_t elapsed_ms = bid_json_number(response, "elapsed_ms");
	FILE *line = fmemopen(text, sizeof(text), "w");

	print_step("server", bid_json_string(response, "server"));
	if (*url)
		print_step("", url);
	if (*redirect)
		print_step("redirect", redirect);
	if (!line)
		return;
	fputs(bid_json_string(response, "state"), line);
	if (bid_json_number(response, "requests") || elapsed_ms || *url)
		fprintf(line, " after %" JSON_INTEGER_FORMAT " ms%s", elapsed_ms, in_requests(response, requests));
	fprintf(line, ": %s", bid_json_string(response, "reason"));
	if (received > 0)
		fprintf(line, ", %s", ctl_format_size(received, size));
	if (received > 0 && elapsed_ms > 0)
		fprintf(line, ", %s/s", ctl_format_size(received * 1000 / (uint64_t)elapsed_ms, rate));
	if (*before)
		fprintf(line, "; before: %s", before);
	fclose(line);
	print_step("", text);
	print_time(response);
}

/* bid_store_field_fn */
static int print_field(void *user, const char *name, const char *value)
{
	if (strcmp(name, "digest") == 0)
		print_step("digest", value);
	else if (strcmp(name, "signer") == 0)
		print_step("signed by", value);
	return 0;
}

/* bid_store_field_fn */
static int is_fetched(void *user, const char *name, const char *value)
{
	return strcmp(name, "how") == 0 && strcmp(value, "fetched") == 0;
}

static const char *describe_check(struct bid_store *store, const struct bid_artifact *artifact)
{
	if (artifact->kind == BID_KIND_DEBUGINFO)
		return "complete, of this build, with debug information or symbols";
	if (!bid_kind_has_subpath(artifact->kind))
		return "complete, and of this build";
	if (bid_store_each_field(store, artifact, is_fetched, NULL) > 0)
		return "its size; it carries no build-id";
	return "the file of this build that it was cut out of";
}

static const char *describe_lookup(int error)
{
	switch (error) {
	case 0:
		return "the store has it";
	case -ENOENT:
		return "the store lacks it";
	case -EAGAIN:
		return "the store has the ELF file and the debuginfo";
	case -ENODATA:
		return "the store has the files of the build, and they lack it";
	case -EBADMSG:
		return "the store has a file of that name, which is another build, or damaged";
	case -EFBIG:
	case -EOPNOTSUPP:
		return "the store has a packed file that cannot be unpacked";
	default:
		return bid_strerror(error);
	}
}

void ctl_trace_print(const struct ctl_trace *trace, struct bid_store *store, const struct bid_artifact *artifact, int error,
		     const char *path)
{
	char hex[BID_ID_HEX_MAX], text[128];
	const json_t *response;
	size_t i;

	fprintf(stderr, "%s%s", bid_kind_name(artifact->kind), artifact->subpath ? " " : "");
	ctl_print_text(stderr, bid_subpath_text(artifact->subpath));
	fprintf(stderr, " of %s\n", bid_id_format(&artifact->id, hex));
	print_step("store", bid_store_path(store));
	if (trace->stored == 0 && path && strncmp(path, bid_store_path(store), strlen(bid_store_path(store))) != 0)
		print_step("lower", path);
	else
		print_step("", describe_lookup(trace->stored));
	if (trace->negative_ttl_s) {
		snprintf(text, sizeof(text), "no server has it; next request in %u s", trace->negative_ttl_s);
		print_step("negative", text);
	}
	if (trace->waited_ms) {
		snprintf(text, sizeof(text), "%u ms for another process that was fetching it", trace->waited_ms);
		print_step("waited", text);
	}
	if (trace->of_mount && !trace->servers && error < 0)
		print_step("server", "the mount that covers the store reports no response");
	json_array_foreach(trace->servers, i, response) print_response(response);
	if (error == 0 && trace->stored < 0) {
		print_step("checked", describe_check(store, artifact));
		bid_store_each_field(store, artifact, print_field, NULL);
		print_step("published", path);
	}
}
