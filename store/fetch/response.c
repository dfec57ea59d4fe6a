// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/response.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void bid_response_init(struct bid_response *response)
{
	*response = (struct bid_response){ .content_length = BID_SIZE_UNKNOWN, .debuginfod_size = BID_SIZE_UNKNOWN };
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char printable(char c)
{
	return (unsigned char)c < ' ' || c == '\177' ? '?' : c;
}

/* The number that is all of the @len characters at @text, or BID_SIZE_UNKNOWN. */
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
	/* a name that was cut would be a wrong one */
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

static bool value_is(const char *value, size_t len, const char *expected)
{
	return strlen(expected) == len && strncasecmp(value, expected, len) == 0;
}

/* Names are lower-case over HTTP/2, and as the server spells them before. */
static void take_field(struct bid_response *response, const char *name, size_t name_len, const char *value, size_t len)
{
	if (value_is(name, name_len, "Content-Length"))
		response->content_length = parse_size(value, len);
	else if (value_is(name, name_len, "Transfer-Encoding"))
		response->chunked = !value_is(value, len, "identity");
	else if (value_is(name, name_len, "Content-Encoding"))
		response->encoded = len > 0 && !value_is(value, len, "identity");
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

static bool is_white(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
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

/* "HTTP/1.1 200 OK", "HTTP/2 200 ". Whatever else libcurl lets pass has the status 0, which means nothing good. */
static void take_status_line(struct bid_response *response, const char *line, size_t len)
{
	size_t header_bytes = response->header_bytes;
	const char *space = memchr(line, ' ', len);

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
	return response->status / 100 == 1 || response->redirects ? BID_RESPONSE_NEXT : BID_RESPONSE_BODY;
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
	/* RFC 9112, 6.3: the length of a chunked body is where its chunks end, whatever Content-Length says */
	if (!response->chunked && response->content_length != BID_SIZE_UNKNOWN)
		return response->content_length;
	return response->debuginfod_size;
}

/* elfutils' server says 503 also of what it will never serve; only the text tells. */
static bool is_permanent_503(const struct bid_response *response)
{
	static const char *const beginnings[] = { "invalid ", "webapi error" };

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (strncmp(response->text, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

/* The first row that fits. The last is a refusal: such a status says nothing of the artifact, and asking again is no use. */
static const struct meaning {
	unsigned from, to;
	enum bid_outcome outcome;
	bool retry;
} meanings[] = {
	{ 200, 200, BID_OUTCOME_FOUND, false },
	{ 404, 404, BID_OUTCOME_ABSENT, false },
	{ 410, 410, BID_OUTCOME_ABSENT, false },
	{ 406, 406, BID_OUTCOME_TOO_LARGE, false },	/* in answer to X-DEBUGINFOD-MAXSIZE */
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

void bid_response_describe(const struct bid_response *response, char *buf, size_t size)
{
	char line[BID_RESPONSE_TEXT_MAX];
	size_t n = 0;

	while (n < response->text_len && response->text[n] != '\n' && response->text[n] != '\r') {
		line[n] = response->text[n] < ' ' || response->text[n] > '~' ? '?' : response->text[n];
		n++;
	}
	line[n] = '\0';

	/* the first line of a page tells nothing, nor does what a server says beside a plain no */
	if (n == 0 || line[0] == '<' || response->status == 404 || response->status == 410)
		snprintf(buf, size, "HTTP %u", response->status);
	else
		snprintf(buf, size, "HTTP %u: %s", response->status, line);
}
