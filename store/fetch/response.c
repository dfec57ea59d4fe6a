// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/response.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/fetch.h"

void bid_response_init(struct bid_response *response, unsigned status)
{
	*response = (struct bid_response){
		.status = status,
		.content_length = BID_SIZE_UNKNOWN,
		.debuginfod_size = BID_SIZE_UNKNOWN,
		.part_start = BID_SIZE_UNKNOWN,
		.part_size = BID_SIZE_UNKNOWN,
	};
}

static char to_printable(char c)
{
	return (unsigned char)c < ' ' || c == '\177' ? '?' : c;
}

/* Returns the number in the @len characters at @text, or BID_SIZE_UNKNOWN. */
static uint64_t parse_size(const char *text, size_t len)
{
	uint64_t size = 0;

	if (len == 0 || len > 18 || strspn(text, "0123456789") < len)
		return BID_SIZE_UNKNOWN;
	for (size_t i = 0; i < len; i++)
		size = size * 10 + (uint64_t)(text[i] - '0');
	return size;
}

static void keep_name(char name[static BID_RESPONSE_NAME_MAX], const char *value)
{
	size_t len = strlen(value);

	/* a truncated name would be wrong */
	if (len >= BID_RESPONSE_NAME_MAX)
		return;
	for (size_t i = 0; i <= len; i++)
		name[i] = i < len ? to_printable(value[i]) : '\0';
}

static void keep_signature(char signature[static BID_IMA_SIGNATURE_MAX + 1], const char *value)
{
	size_t len = strlen(value);

	signature[0] = '\0';
	if (len > BID_IMA_SIGNATURE_MAX || len % 2 != 0 || strspn(value, "0123456789abcdefABCDEF") < len)
		return;
	for (size_t i = 0; i <= len; i++)
		signature[i] = (char)tolower((unsigned char)value[i]);
}

/* RFC 9110, 8.8.3: only a strong validator proves equal bytes. */
static void keep_etag(struct bid_response *response, const char *value)
{
	size_t len = strlen(value);

	response->etag[0] = '\0';
	if (len < 2 || len >= BID_RESPONSE_ETAG_MAX || value[0] != '"' || value[len - 1] != '"')
		return;
	for (size_t i = 1; i + 1 < len; i++)
		if (value[i] == '"' || to_printable(value[i]) != value[i])
			return;
	memcpy(response->etag, value, len + 1);
}

/* RFC 9110, 14.4: "bytes 5000-99999/100000". Other forms stay unknown. */
static void take_part(struct bid_response *response, const char *value)
{
	static const char unit[] = "bytes ";
	const char *dash = strchr(value, '-'), *slash = dash ? strchr(dash, '/') : NULL;

	response->part_start = BID_SIZE_UNKNOWN;
	response->part_size = BID_SIZE_UNKNOWN;
	if (!slash || strncasecmp(value, unit, strlen(unit)) != 0)
		return;
	value += strlen(unit);
	response->part_size = parse_size(slash + 1, strlen(slash + 1));
	/* only a part up to the end is of use */
	if (response->part_size != BID_SIZE_UNKNOWN && parse_size(dash + 1, (size_t)(slash - dash - 1)) == response->part_size - 1)
		response->part_start = parse_size(value, (size_t)(dash - value));
}

/* RFC 9110, 8.3.1: with parameters, "text/html; charset=utf-8". */
static bool is_page(const char *type)
{
	static const char page[] = "text/html";

	return strncasecmp(type, page, strlen(page)) == 0 && strchr("; \t", type[strlen(page)]);
}

void bid_response_field(struct bid_response *response, const char *name, const char *value)
{
	if (strcasecmp(name, "Content-Length") == 0)
		response->content_length = parse_size(value, strlen(value));
	else if (strcasecmp(name, "Transfer-Encoding") == 0)
		response->chunked = strcasecmp(value, "identity") != 0;
	else if (strcasecmp(name, "Content-Encoding") == 0)
		response->encoded = *value && strcasecmp(value, "identity") != 0 && strcasecmp(value, "none") != 0;
	else if (strcasecmp(name, "Content-Type") == 0)
		response->is_page = is_page(value);
	else if (strcasecmp(name, "Content-Range") == 0)
		take_part(response, value);
	else if (strcasecmp(name, "Accept-Ranges") == 0)
		response->accepts_ranges = strcasecmp(value, "bytes") == 0;
	else if (strcasecmp(name, "ETag") == 0)
		keep_etag(response, value);
	else if (strcasecmp(name, "Location") == 0)
		response->is_redirect = *value && response->status / 100 == 3;
	else if (strcasecmp(name, "X-DEBUGINFOD-SIZE") == 0)
		response->debuginfod_size = parse_size(value, strlen(value));
	else if (strcasecmp(name, "X-DEBUGINFOD-FILE") == 0)
		keep_name(response->file, value);
	else if (strcasecmp(name, "X-DEBUGINFOD-ARCHIVE") == 0)
		keep_name(response->archive, value);
	else if (strcasecmp(name, "X-DEBUGINFOD-IMASIGNATURE") == 0)
		keep_signature(response->ima_signature, value);
}

void bid_response_error_body(struct bid_response *response, const char *data, size_t len)
{
	size_t room = sizeof(response->text) - 1 - response->text_len;

	if (len > room)
		len = room;
	memcpy(response->text + response->text_len, data, len);
	response->text_len += len;
}

uint64_t bid_response_size(const struct bid_response *response)
{
	if (response->status == 206)
		return response->part_size;
	/* RFC 9112, 6.3: chunks mark the end of a body, not Content-Length */
	if (!response->chunked && !response->encoded && response->content_length != BID_SIZE_UNKNOWN)
		return response->content_length;
	return response->debuginfod_size;
}

bool bid_response_contradicts_itself(const struct bid_response *response)
{
	return !response->chunked && !response->encoded && response->content_length != BID_SIZE_UNKNOWN &&
	       response->debuginfod_size != BID_SIZE_UNKNOWN && response->content_length != response->debuginfod_size;
}

/*
 * Is it a 503 of elfutils' server for an id or a kind that it will never serve? Only the text differs from other ones. "webapi
 * error" is about the path before "/buildid": the URL is wrong, which tells nothing about the artifact.
 */
static bool is_permanent_503(const struct bid_response *response)
{
	static const char beginning[] = "invalid ";

	return strncmp(response->text, beginning, strlen(beginning)) == 0;
}

/* The first matching row counts. The last one is a refusal: its status does not concern the artifact, and a retry is useless. */
static const struct meaning {
	unsigned from, to;
	enum bid_outcome outcome;
	bool retry;
} meanings[] = {
	{ 200, 200, BID_OUTCOME_FOUND, false },
	{ 404, 404, BID_OUTCOME_ABSENT, false },
	{ 410, 410, BID_OUTCOME_ABSENT, false },
	{ 406, 406, BID_OUTCOME_TOO_LARGE, false }, /* the response to X-DEBUGINFOD-MAXSIZE */
	{ 405, 405, BID_OUTCOME_UNSUPPORTED, false },
	{ 422, 422, BID_OUTCOME_UNSUPPORTED, false },
	{ 501, 501, BID_OUTCOME_UNSUPPORTED, false },
	{ 424, 424, BID_OUTCOME_UNAVAILABLE, false }, /* a tree in trouble, also behind nginx: see TEAM.md */
	{ 408, 408, BID_OUTCOME_UNAVAILABLE, true },
	{ 425, 425, BID_OUTCOME_UNAVAILABLE, true },
	{ 429, 429, BID_OUTCOME_UNAVAILABLE, true },
	{ 500, 599, BID_OUTCOME_UNAVAILABLE, true },
	{ 0, ~0u, BID_OUTCOME_REFUSED, false },
};

enum bid_outcome bid_response_outcome(const struct bid_response *response, bool *ret_retry)
{
	const struct meaning *meaning = meanings;

	if (response->status == 503 && is_permanent_503(response)) {
		*ret_retry = false;
		return BID_OUTCOME_UNSUPPORTED;
	}
	while (response->status < meaning->from || response->status > meaning->to)
		meaning++;
	*ret_retry = meaning->retry;
	return meaning->outcome;
}

bool bid_response_is_definite(const struct bid_response *response)
{
	bool retry;
	enum bid_outcome outcome = bid_response_outcome(response, &retry);

	return outcome == BID_OUTCOME_FOUND || outcome == BID_OUTCOME_ABSENT;
}

bool bid_response_has_artifact(const struct bid_response *response)
{
	return response->status == 200 || response->status == 206;
}

bool bid_response_offers_parts(const struct bid_response *response)
{
	return response->accepts_ranges && response->etag[0] && !response->chunked && !response->encoded;
}

bool bid_response_is_server_error(const struct bid_response *response)
{
	bool retry;

	bid_response_outcome(response, &retry);
	return retry || response->status == 401 || response->status == 407;
}

void bid_response_plain(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

void bid_response_describe(const struct bid_response *response, char *buf, size_t size)
{
	char line[BID_RESPONSE_TEXT_MAX];
	size_t n = 0;

	while (n < response->text_len && response->text[n] && response->text[n] != '\n' && response->text[n] != '\r') {
		line[n] = response->text[n];
		n++;
	}
	line[n] = '\0';
	bid_response_plain(line);

	/* the first line of a page, or of a plain 404, has no information; debuginfod's 404 is plain */
	if (response->status == 404 && response->is_page)
		snprintf(buf, size, BID_FETCH_WEB_PAGE);
	else if (n == 0 || line[0] == '<' || response->status == 404 || response->status == 410)
		snprintf(buf, size, "HTTP %u", response->status);
	else
		snprintf(buf, size, "HTTP %u: %s", response->status, line);
}
