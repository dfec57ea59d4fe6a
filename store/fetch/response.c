// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/response.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void bid_response_init(struct bid_response *response)
{
	*response = (struct bid_response){
		.content_length = BID_SIZE_UNKNOWN,
		.debuginfod_size = BID_SIZE_UNKNOWN,
		.part_start = BID_SIZE_UNKNOWN,
		.part_size = BID_SIZE_UNKNOWN,
	};
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_white(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char printable(char c)
{
	return (unsigned char)c < ' ' || c == '\177' ? '?' : c;
}

/* Returns the number in the @len characters at @text, or BID_SIZE_UNKNOWN. */
static uint64_t parse_size(const char *text, size_t len)
{
	uint64_t size = 0;

	if (len == 0 || len > 18)
		return BID_SIZE_UNKNOWN;
	for (size_t i = 0; i < len; i++) {
		if (!is_digit(text[i]))
			return BID_SIZE_UNKNOWN;
		size = size * 10 + (uint64_t)(text[i] - '0');
	}
	return size;
}

static void keep_name(char name[static BID_RESPONSE_NAME_MAX], const char *value, size_t len)
{
	/* a truncated name would be wrong */
	if (len >= BID_RESPONSE_NAME_MAX)
		return;
	for (size_t i = 0; i < len; i++)
		name[i] = printable(value[i]);
	name[len] = '\0';
}

static char hex_digit(char c)
{
	if (c >= 'A' && c <= 'F')
		c = (char)(c - 'A' + 'a');
	return is_digit(c) || (c >= 'a' && c <= 'f') ? c : '\0';
}

static void keep_signature(char signature[static BID_IMA_SIGNATURE_MAX + 1], const char *value, size_t len)
{
	signature[0] = '\0';
	if (len > BID_IMA_SIGNATURE_MAX || len % 2 != 0)
		return;
	for (size_t i = 0; i < len; i++) {
		signature[i] = hex_digit(value[i]);
		if (!signature[i]) {
			signature[0] = '\0';
			return;
		}
	}
	signature[len] = '\0';
}

/* RFC 9110, 8.8.3: only a strong validator proves equal bytes. */
static void keep_etag(struct bid_response *response, const char *value, size_t len)
{
	response->etag[0] = '\0';
	if (len < 2 || len >= BID_RESPONSE_ETAG_MAX || value[0] != '"' || value[len - 1] != '"')
		return;
	for (size_t i = 1; i + 1 < len; i++)
		if (value[i] == '"' || printable(value[i]) != value[i])
			return;
	memcpy(response->etag, value, len);
	response->etag[len] = '\0';
}

static bool value_is(const char *value, size_t len, const char *expected)
{
	return strlen(expected) == len && strncasecmp(value, expected, len) == 0;
}

/* RFC 9110, 14.4: "bytes 5000-99999/100000". Other forms stay unknown. */
static void take_part(struct bid_response *response, const char *value, size_t len)
{
	static const char unit[] = "bytes ";
	const char *end = value + len, *dash, *slash;

	response->part_start = BID_SIZE_UNKNOWN;
	response->part_size = BID_SIZE_UNKNOWN;
	if (len < strlen(unit) || strncasecmp(value, unit, strlen(unit)) != 0)
		return;
	value += strlen(unit);
	dash = memchr(value, '-', (size_t)(end - value));
	slash = dash ? memchr(dash, '/', (size_t)(end - dash)) : NULL;
	if (!slash)
		return;
	response->part_size = parse_size(slash + 1, (size_t)(end - slash - 1));
	/* only a part up to the end is of use */
	if (response->part_size != BID_SIZE_UNKNOWN && parse_size(dash + 1, (size_t)(slash - dash - 1)) == response->part_size - 1)
		response->part_start = parse_size(value, (size_t)(dash - value));
}

/* RFC 9110, 8.3.1: without the parameters, "; charset=utf-8". */
static size_t media_type_len(const char *value, size_t len)
{
	size_t n = 0;

	while (n < len && value[n] != ';' && !is_white(value[n]))
		n++;
	return n;
}

/* HTTP/2 sends names in lower case, HTTP/1 in any. */
static void take_field(struct bid_response *response, const char *name, size_t name_len, const char *value, size_t len)
{
	if (value_is(name, name_len, "Content-Length"))
		response->content_length = parse_size(value, len);
	else if (value_is(name, name_len, "Transfer-Encoding"))
		response->chunked = !value_is(value, len, "identity");
	else if (value_is(name, name_len, "Content-Encoding"))
		response->encoded = len > 0 && !value_is(value, len, "identity") && !value_is(value, len, "none");
	else if (value_is(name, name_len, "Content-Type"))
		response->is_page = value_is(value, media_type_len(value, len), "text/html");
	else if (value_is(name, name_len, "Content-Range"))
		take_part(response, value, len);
	else if (value_is(name, name_len, "Accept-Ranges"))
		response->accepts_ranges = value_is(value, len, "bytes");
	else if (value_is(name, name_len, "ETag"))
		keep_etag(response, value, len);
	else if (value_is(name, name_len, "Location"))
		response->redirects = len > 0 && response->status / 100 == 3;
	else if (value_is(name, name_len, "X-DEBUGINFOD-SIZE"))
		response->debuginfod_size = parse_size(value, len);
	else if (value_is(name, name_len, "X-DEBUGINFOD-FILE"))
		keep_name(response->file, value, len);
	else if (value_is(name, name_len, "X-DEBUGINFOD-ARCHIVE"))
		keep_name(response->archive, value, len);
	else if (value_is(name, name_len, "X-DEBUGINFOD-IMASIGNATURE"))
		keep_signature(response->ima_signature, value, len);
}

static void take_line(struct bid_response *response, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	const char *value;
	size_t value_len;

	if (!colon)
		return;
	value = colon + 1;
	value_len = len - (size_t)(value - line);
	while (value_len && is_white(*value)) {
		value++;
		value_len--;
	}
	while (value_len && is_white(value[value_len - 1]))
		value_len--;
	take_field(response, line, (size_t)(colon - line), value, value_len);
}

/* "HTTP/1.1 200 OK", "HTTP/2 200 ". Other lines have the status 0, a refusal. */
static void take_status_line(struct bid_response *response, const char *line, size_t len)
{
	const char *space = memchr(line, ' ', len);
	size_t header_bytes = response->header_bytes;

	bid_response_init(response);
	response->header_bytes = header_bytes;
	response->in_header = true;
	if (!space || line + len - space < 4)
		return;
	if (is_digit(space[1]) && is_digit(space[2]) && is_digit(space[3]))
		response->status = (unsigned)(space[1] - '0') * 100 + (unsigned)(space[2] - '0') * 10 + (unsigned)(space[3] - '0');
}

enum bid_response_event bid_response_header(struct bid_response *response, const char *line, size_t len)
{
	response->header_bytes += len;
	if (response->header_bytes > BID_RESPONSE_HEADER_MAX)
		return BID_RESPONSE_TOO_LONG;
	if (!response->in_header) {
		take_status_line(response, line, len);
		return BID_RESPONSE_MORE;
	}
	if (len == 0 || (line[0] != '\r' && line[0] != '\n')) {
		take_line(response, line, len);
		return BID_RESPONSE_MORE;
	}
	response->in_header = false;
	/* an unrequested upgrade: no HTTP follows a 101 */
	return response->status / 100 == 1 && response->status != 101 ? BID_RESPONSE_INTERIM : BID_RESPONSE_BODY;
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

/* Is it a 503 of elfutils' server for a request that it will never serve? Only the text differs from other ones. */
static bool is_permanent_503(const struct bid_response *response)
{
	static const char *const beginnings[] = { "invalid ", "webapi error" };

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (strncmp(response->text, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
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
	{ 408, 408, BID_OUTCOME_UNREACHABLE, true },
	{ 425, 425, BID_OUTCOME_UNREACHABLE, true },
	{ 429, 429, BID_OUTCOME_UNREACHABLE, true },
	{ 500, 599, BID_OUTCOME_UNREACHABLE, true },
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

	if (response->status == 401 || response->status == 407)
		return true;
	return bid_response_outcome(response, &retry) == BID_OUTCOME_UNREACHABLE;
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

	/* the first line of a page, or of a plain 404, has no information */
	if (n == 0 || line[0] == '<' || response->status == 404 || response->status == 410)
		snprintf(buf, size, "HTTP %u", response->status);
	else
		snprintf(buf, size, "HTTP %u: %s", response->status, line);
}
