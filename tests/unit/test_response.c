// SPDX-License-Identifier: LGPL-2.1-or-later
/* Header and status of a response, without a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fetch/response.h"

/* "NAME: VALUE", as libcurl splits it. */
static void take(struct bid_response *response, const char *line)
{
	char name[64], value[BID_IMA_SIGNATURE_MAX + 64] = "";

	assert_true(sscanf(line, "%63[^:]: %4159[^\r]", name, value) >= 1);
	bid_response_field(response, name, value);
}

static void take_all(struct bid_response *response, const char *const *lines, size_t n)
{
	bid_response_init(response, 200);
	for (size_t i = 0; i < n; i++)
		take(response, lines[i]);
}

#define take_lines(response, ...) \
	take_all(response, (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void test_page_is_detected(void **state)
{
	static const struct {
		const char *field;
		bool is_page;
	} cases[] = {
		{ "Content-Type: text/html", true },
		{ "content-type:TEXT/HTML; charset=utf-8", true },
		{ "Content-Type: text/html;charset=utf-8", true },
		{ "Content-Type: text/htmlx", false },
		{ "Content-Type: text/plain; not=text/html", false },
		{ "Content-Type:", false },
		{ "X-Content-Type: text/html", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bid_response response;

		take_lines(&response, cases[i].field);
		assert_int_equal(response.is_page, cases[i].is_page);
	}
}

static void test_file_response_is_accepted(void **state)
{
	struct bid_response response;
	bool retry;

	bid_response_init(&response, 0);
	assert_int_equal(bid_response_size(&response), BID_SIZE_UNKNOWN);
	take_lines(&response, "Content-Length: 4711", "X-DEBUGINFOD-SIZE:4711", "X-Debuginfod-File:   /usr/bin/a b",
		   "x-debuginfod-archive: /srv/a.rpm");
	assert_int_equal(response.status, 200);
	assert_int_equal(bid_response_size(&response), 4711);
	assert_string_equal(response.file, "/usr/bin/a b");
	assert_string_equal(response.archive, "/srv/a.rpm");
	assert_false(response.encoded);
	assert_int_equal(bid_response_outcome(&response, &retry), BID_OUTCOME_FOUND);
	assert_false(retry);
}

/* Kept if it is whole bytes in hex and not too long; else dropped, not cut. */
static void test_ima_signature_is_kept(void **state)
{
	static const struct {
		const char *field, *signature;
	} cases[] = {
		{ "X-DEBUGINFOD-IMASIGNATURE: 0302aAfF", "0302aaff" },
		{ "x-debuginfod-imasignature:03", "03" },
		{ "X-DEBUGINFOD-IMASIGNATURE: 030", "" },
		{ "X-DEBUGINFOD-IMASIGNATURE: 03 2", "" },
		{ "X-DEBUGINFOD-IMASIGNATURE: 0x03", "" },
		{ "X-DEBUGINFOD-IMASIGNATURE:", "" },
	};
	struct bid_response response;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		take_lines(&response, cases[i].field);
		assert_string_equal(response.ima_signature, cases[i].signature);
	}
	for (int extra = 0; extra <= 2; extra += 2) {
		char signature[BID_IMA_SIGNATURE_MAX + 8];

		bid_response_init(&response, 200);
		snprintf(signature, sizeof(signature), "%0*d", BID_IMA_SIGNATURE_MAX + extra, 0);
		bid_response_field(&response, "X-DEBUGINFOD-IMASIGNATURE", signature);
		assert_int_equal(strlen(response.ima_signature), extra ? 0 : BID_IMA_SIGNATURE_MAX);
	}
}

static void test_sizes_are_parsed(void **state)
{
	static const struct {
		const char *field[2];
		uint64_t size;
	} cases[] = {
		{ { "Content-Length: 12", "X-DEBUGINFOD-SIZE: 34" }, 12 },
		{ { "X-DEBUGINFOD-SIZE: 34", "Content-Length: 12" }, 12 },
		{ { "X-DEBUGINFOD-SIZE: 34", "X-Other: 1" }, 34 },
		{ { "Content-Length: 12", "Transfer-Encoding: chunked" }, BID_SIZE_UNKNOWN },
		{ { "Transfer-Encoding: chunked", "X-DEBUGINFOD-SIZE: 34" }, 34 },
		{ { "Transfer-Encoding: identity", "Content-Length: 12" }, 12 },
		{ { "Content-Length: 0", "X-Other: 1" }, 0 },
		{ { "Content-Length: 999999999999999999", "X-Other: 1" }, 999999999999999999 },
		{ { "Content-Length: 9999999999999999999", "X-Other: 1" }, BID_SIZE_UNKNOWN },
		{ { "Content-Length: -1", "X-DEBUGINFOD-SIZE: 0x10" }, BID_SIZE_UNKNOWN },
		{ { "Content-Length:", "X-DEBUGINFOD-SIZE: 1 2" }, BID_SIZE_UNKNOWN },
		{ { "Content-Length 12", "XX-DEBUGINFOD-SIZE: 12" }, BID_SIZE_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bid_response response;

		take_lines(&response, cases[i].field[0], cases[i].field[1]);
		if (bid_response_size(&response) != cases[i].size)
			fail_msg("case %zu: %llu", i, (unsigned long long)bid_response_size(&response));
	}
}

static void test_names_of_files_are_kept_or_dropped(void **state)
{
	struct bid_response response;
	char name[BID_RESPONSE_NAME_MAX + 1];

	take_lines(&response, "X-DEBUGINFOD-ARCHIVE: /a\033[31m\177b");
	assert_string_equal(response.archive, "/a?[31m?b");

	/* the longest that is kept, and one more */
	memset(name, 'x', BID_RESPONSE_NAME_MAX);
	name[BID_RESPONSE_NAME_MAX] = '\0';
	bid_response_field(&response, "x-debuginfod-file", name);
	assert_string_equal(response.file, "");
	name[BID_RESPONSE_NAME_MAX - 1] = '\0';
	bid_response_field(&response, "x-debuginfod-file", name);
	assert_int_equal(strlen(response.file), BID_RESPONSE_NAME_MAX - 1);
}

static void test_encoding_is_recognized(void **state)
{
	struct bid_response response;

	bid_response_init(&response, 200);
	take(&response, "Content-Encoding: identity");
	assert_false(response.encoded);
	take(&response, "Content-Encoding: none");
	assert_false(response.encoded);
	take(&response, "content-encoding: gzip");
	assert_true(response.encoded);
}

static void test_each_status_has_its_outcome(void **state)
{
	static const struct {
		unsigned status;
		const char *text;
		enum bid_outcome outcome;
		bool retry;
		const char *words;
	} cases[] = {
		{ 200, "", BID_OUTCOME_FOUND, false, "HTTP 200" },
		{ 404, "not found", BID_OUTCOME_ABSENT, false, "HTTP 404" },
		{ 410, "", BID_OUTCOME_ABSENT, false, "HTTP 410" },
		{ 406, "File too large, max size=1", BID_OUTCOME_TOO_LARGE, false, "HTTP 406: File too large, max size=1" },
		{ 405, "", BID_OUTCOME_UNSUPPORTED, false, "HTTP 405" },
		{ 422, "", BID_OUTCOME_UNSUPPORTED, false, "HTTP 422" },
		{ 501, "", BID_OUTCOME_UNSUPPORTED, false, "HTTP 501" },
		{ 503, "invalid buildid", BID_OUTCOME_UNSUPPORTED, false, "HTTP 503: invalid buildid" },
		{ 503, "invalid artifacttype", BID_OUTCOME_UNSUPPORTED, false, "HTTP 503: invalid artifacttype" },
		{ 503, "webapi error, unrecognized '/operation'", BID_OUTCOME_UNAVAILABLE, true,
		  "HTTP 503: webapi error, unrecognized '/operation'" },
		{ 503, "upstream debuginfod query failed: Connection refused\nmore", BID_OUTCOME_UNAVAILABLE, true,
		  "HTTP 503: upstream debuginfod query failed: Connection refused" },
		{ 502, "invalid gateway", BID_OUTCOME_UNAVAILABLE, true, "HTTP 502: invalid gateway" },
		{ 500, "<html><body>", BID_OUTCOME_UNAVAILABLE, true, "HTTP 500" },
		{ 504, "\r\nlate", BID_OUTCOME_UNAVAILABLE, true, "HTTP 504" },
		{ 522, "a\033b\xc3\xa4", BID_OUTCOME_UNAVAILABLE, true, "HTTP 522: a?b??" },
		{ 408, "", BID_OUTCOME_UNAVAILABLE, true, "HTTP 408" },
		{ 425, "", BID_OUTCOME_UNAVAILABLE, true, "HTTP 425" },
		{ 429, "slow down", BID_OUTCOME_UNAVAILABLE, true, "HTTP 429: slow down" },
		{ 400, "", BID_OUTCOME_REFUSED, false, "HTTP 400" },
		{ 401, "", BID_OUTCOME_REFUSED, false, "HTTP 401" },
		{ 403, "AccessDenied", BID_OUTCOME_REFUSED, false, "HTTP 403: AccessDenied" },
		{ 407, "", BID_OUTCOME_REFUSED, false, "HTTP 407" },
		{ 418, "", BID_OUTCOME_REFUSED, false, "HTTP 418" },
		{ 204, "", BID_OUTCOME_REFUSED, false, "HTTP 204" },
		{ 206, "", BID_OUTCOME_REFUSED, false, "HTTP 206" },
		{ 304, "", BID_OUTCOME_REFUSED, false, "HTTP 304" },
		{ 600, "", BID_OUTCOME_REFUSED, false, "HTTP 600" },
		{ 999, "", BID_OUTCOME_REFUSED, false, "HTTP 999" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bid_response response;
		char words[256];
		bool retry = !cases[i].retry;

		bid_response_init(&response, cases[i].status);
		bid_response_error_body(&response, cases[i].text, strlen(cases[i].text));
		if (bid_response_outcome(&response, &retry) != cases[i].outcome || retry != cases[i].retry)
			fail_msg("%u \"%s\": %s, retry %d", cases[i].status, cases[i].text,
				 bid_outcome_name(bid_response_outcome(&response, &retry)), retry);
		bid_response_describe(&response, words, sizeof(words));
		assert_string_equal(words, cases[i].words);
		take(&response, "Content-Type: text/html; charset=utf-8");
		bid_response_describe(&response, words, sizeof(words));
		assert_string_equal(words, cases[i].status == 404 ? "HTTP 404 with a web page" : cases[i].words);
	}
}

/* The text comes in pieces of any size and is cut where the room ends. */
static void test_error_text_is_joined(void **state)
{
	struct bid_response response;
	char words[2 * BID_RESPONSE_TEXT_MAX], small[16];

	bid_response_init(&response, 500);
	bid_response_describe(&response, words, sizeof(words));
	assert_string_equal(words, "HTTP 500");
	for (int i = 0; i < 10 * BID_RESPONSE_TEXT_MAX; i++)
		bid_response_error_body(&response, "y", 1);
	bid_response_describe(&response, words, sizeof(words));
	assert_int_equal(strlen(words), strlen("HTTP 500: ") + BID_RESPONSE_TEXT_MAX - 1);
	bid_response_describe(&response, small, sizeof(small));
	assert_string_equal(small, "HTTP 500: yyyyy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_response_is_accepted),
		cmocka_unit_test(test_page_is_detected),
		cmocka_unit_test(test_ima_signature_is_kept),
		cmocka_unit_test(test_sizes_are_parsed),
		cmocka_unit_test(test_names_of_files_are_kept_or_dropped),
		cmocka_unit_test(test_encoding_is_recognized),
		cmocka_unit_test(test_each_status_has_its_outcome),
		cmocka_unit_test(test_error_text_is_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
