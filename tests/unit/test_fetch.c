// SPDX-License-Identifier: LGPL-2.1-or-later
/* The HTTP server: all forms of a server's response. */
#include "fetch_fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void test_healthy_server_delivers(void **state)
{
	struct bid_fetch_config config = calm;
	struct bid_server_health health;
	struct capture capture;
	struct setting setting;
	char expected[256];
	const char *header;

	behave("ok");
	config.max_size = 5 * BODY_SIZE;
	set_up(&setting, &config);
	assert_string_equal(setting.server->name, world.url);
	setting.server->ops->health(setting.server, &health);
	assert_null(health.protocol);
	ask(setting.server, ID, &capture);
	setting.server->ops->health(setting.server, &health);
	assert_string_equal(health.protocol, "HTTP/1.1");

	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_body(&capture);
	assert_int_equal(capture.heads, 1);
	assert_int_equal(capture.size, BODY_SIZE);
	assert_string_equal(capture.text, "HTTP 200");
	snprintf(expected, sizeof(expected), "%s/buildid/" ID "/debuginfo", world.url);
	assert_string_equal(capture.url, expected);
	snprintf(expected, sizeof(expected), "%s/" ID "/debuginfo", world.root);
	assert_string_equal(capture.file, expected);

	header = control("GET", "/headers?path=/buildid/" ID "/debuginfo");
	assert_non_null(strstr(header, "\"User-Agent\": \"bidfs/" BID_VERSION " (debuginfod client)\""));
	assert_non_null(strstr(header, "\"X-DEBUGINFOD-MAXSIZE\": \"500000\""));
	assert_null(strstr(header, "Accept-Encoding"));
	tear_down(&setting);
}

/* The protocol is the server's choice. */
static void test_request_and_response_fields_are_right(void **state)
{
	static const char *const answers[][2] = { { "old", "HTTP/1.0" }, { "ok", "HTTP/1.1" } };
	struct bid_server_health health;
	struct capture capture;
	struct setting setting;

	set_up(&setting, &calm);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		behave(answers[i][0]);
		ask(setting.server, ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
		setting.server->ops->health(setting.server, &health);
		assert_string_equal(health.protocol, answers[i][1]);
	}
	tear_down(&setting);
}

static void test_each_kind_has_its_url(void **state)
{
	static const enum bid_kind others[] = { BID_KIND_NONE, BID_KIND_KALLSYMS, BID_KIND_PROBES, BID_KIND_VDSO, BID_KIND_END };
	struct setting setting;
	struct capture capture;

	behave("ok");
	set_up(&setting, &calm);
	capture_init(&capture);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct bid_artifact artifact = { .kind = others[i] };

		assert_int_equal(bid_id_parse_str(ID, &artifact.id), 0);
		assert_int_equal(setting.server->ops->request(setting.server, &artifact, &receiver, &capture), -EOPNOTSUPP);
	}
	start(setting.server, ID, BID_KIND_ELF, &capture);
	await_done(&capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(strtoul(control("GET", "/count?path=/buildid/" ID "/executable"), NULL, 10), 1);
	assert_int_equal(requests(), 1);
	tear_down(&setting);
}

/* The result of a behaviour of the server, and its cost. */
struct reaction {
	const char *behaviour;
	enum bid_outcome outcome;
	const char *text; /* beginning of the text */
	unsigned requests, heads;
	bool whole; /* the whole body arrived unchanged */
};

/* With two attempts allowed. */
static void assert_reaction(struct bid_fetch_config config, const struct reaction *wanted)
{
	struct capture capture;
	struct setting setting;
	double began;
	bool whole;

	/* each with its own server: one test must not open the breaker of the next */
	config.retries = 1;
	set_up(&setting, &config);
	behave(wanted->behaviour);
	began = now();
	ask(setting.server, ID, &capture);
	whole = capture.received == BODY_SIZE && memcmp(capture.body, world.body, BODY_SIZE) == 0;
	if (capture.outcome != wanted->outcome || strncmp(capture.text, wanted->text, strlen(wanted->text)) != 0)
		fail_msg("%s: %s, \"%s\"", wanted->behaviour, bid_outcome_name(capture.outcome), capture.text);
	/* the server may be behind */
	await_requests(wanted->requests);
	if (requests() != wanted->requests || capture.heads != wanted->heads || whole != wanted->whole)
		fail_msg("%s: %u requests, %u heads, body of %" PRIu64 " bytes", wanted->behaviour, requests(), capture.heads,
			 capture.received);
	/* two attempts, the pause between them, and much for a busy machine */
	if (capture.done_at - began > 15)
		fail_msg("%s: %g s", wanted->behaviour, capture.done_at - began);
	control("POST", "/release");
	tear_down(&setting);
}

static void test_each_misbehaviour_has_its_outcome(void **state)
{
	static const struct reaction cases[] = {
		{ "chunked", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "no-length", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "close", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "old", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "lower-case", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "early-hints", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "encoding:gzip", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "encoding:deflate", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "encoding:none", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "encoding-chunked:gzip", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "delay:0.2", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "slow:200000", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "many-headers:30000", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "long-header:30000", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "redirect:/plain{path}", BID_OUTCOME_FOUND, "HTTP 200", 2, 1, true },
		/* as curl(1) has it */
		{ "redirect:/plain{path}%23a%20b%C3%A9", BID_OUTCOME_FOUND, "HTTP 200", 2, 1, true },
		{ "redirect:/a%20b{path}", BID_OUTCOME_UNAVAILABLE, "HTTP 503: webapi error", 4, 0, false },
		{ "redirect-page:20000000:/plain{path}", BID_OUTCOME_FOUND, "HTTP 200", 2, 1, true },
		{ "redirect-chain:5", BID_OUTCOME_FOUND, "HTTP 200", 6, 1, true },
		/* a size that contradicts a complete body of known length: an ELF file shows whether it is complete */
		{ "bad-size-header", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "html", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, false },
		{ "empty", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, false },
		/* nothing in HTTP tells */
		{ "truncate-bare:5000", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, false },
		{ "absent", BID_OUTCOME_ABSENT, "HTTP 404", 1, 0, false },
		{ "gone", BID_OUTCOME_ABSENT, "HTTP 410", 1, 0, false },
		/* without a limit nothing is above it */
		{ "error:406", BID_OUTCOME_REFUSED, "HTTP 406: trouble on purpose", 1, 0, false },
		{ "error:501", BID_OUTCOME_UNSUPPORTED, "HTTP 501", 1, 0, false },
		{ "error:422", BID_OUTCOME_UNSUPPORTED, "HTTP 422", 1, 0, false },
		{ "error:503::invalid%20buildid", BID_OUTCOME_UNSUPPORTED, "HTTP 503: invalid buildid", 1, 0, false },
		{ "error:400", BID_OUTCOME_REFUSED, "HTTP 400", 1, 0, false },
		{ "error:401", BID_OUTCOME_REFUSED, "HTTP 401", 1, 0, false },
		{ "error:403", BID_OUTCOME_REFUSED, "HTTP 403", 1, 0, false },
		{ "error:407", BID_OUTCOME_REFUSED, "HTTP 407", 1, 0, false },
		{ "error:500", BID_OUTCOME_UNAVAILABLE, "HTTP 500: trouble on purpose", 2, 0, false },
		{ "error:502", BID_OUTCOME_UNAVAILABLE, "HTTP 502", 2, 0, false },
		{ "error:503", BID_OUTCOME_UNAVAILABLE, "HTTP 503", 2, 0, false },
		{ "error:522", BID_OUTCOME_UNAVAILABLE, "HTTP 522", 2, 0, false },
		{ "error:429", BID_OUTCOME_UNAVAILABLE, "HTTP 429", 2, 0, false },
		{ "error:503:120", BID_OUTCOME_UNAVAILABLE, "HTTP 503: trouble on purpose (Retry-After: 120 s)", 1, 0, false },
		{ "error:503:junk", BID_OUTCOME_UNAVAILABLE, "HTTP 503: trouble on purpose", 2, 0, false },
		{ "error:503:-1", BID_OUTCOME_UNAVAILABLE, "HTTP 503: trouble on purpose", 2, 0, false },
		{ "encoded", BID_OUTCOME_REFUSED, "came in an encoding that cannot be decoded: ", 1, 1, false },
		{ "gzip-members", BID_OUTCOME_REFUSED, "came in an encoding that libcurl does not decode", 1, 1, false },
		{ "redirect:file:///etc/passwd", BID_OUTCOME_REFUSED, "redirected to a place that bidfs does not follow", 1, 0,
		  false },
		{ "redirect:ftp://127.0.0.1/", BID_OUTCOME_REFUSED, "redirected to a place that bidfs does not follow", 1, 0,
		  false },
		{ "redirect-loop", BID_OUTCOME_REFUSED, "redirected too often", 6, 0, false },
		{ "redirect-chain:6", BID_OUTCOME_REFUSED, "redirected too often", 6, 0, false },
		{ "many-headers:100000", BID_OUTCOME_REFUSED, "header above 65536 bytes", 1, 0, false },
		{ "long-header:200000", BID_OUTCOME_REFUSED, "header above 65536 bytes", 1, 0, false },
		{ "endless-trailers", BID_OUTCOME_REFUSED, "header above 65536 bytes", 1, 1, true },
		{ "garbage", BID_OUTCOME_REFUSED, "does not speak HTTP", 1, 0, false },
		{ "truncate:5000", BID_OUTCOME_UNAVAILABLE, "cut short: 5000 of 100000 bytes", 2, 2, false },
		{ "truncate:0", BID_OUTCOME_UNAVAILABLE, "cut short: 0 of 100000 bytes", 2, 2, false },
		{ "truncate:99999", BID_OUTCOME_UNAVAILABLE, "cut short: 99999 of 100000 bytes", 2, 2, false },
		{ "truncate-noclen:5000", BID_OUTCOME_UNAVAILABLE, "cut short: 5000 of 100000 bytes", 2, 2, false },
		{ "truncate-noclen:0", BID_OUTCOME_UNAVAILABLE, "cut short: 0 of 100000 bytes", 2, 2, false },
		{ "truncate-chunked:5000", BID_OUTCOME_UNAVAILABLE, "cut short: 5000 bytes", 2, 2, false },
		{ "big-length", BID_OUTCOME_UNAVAILABLE, "cut short: 100000 of 1099511627776 bytes", 2, 2, true },
		{ "bad-size-no-length", BID_OUTCOME_UNAVAILABLE, "cut short: 100000 of 100001 bytes", 2, 2, true },
		{ "bad-size-no-length:99999", BID_OUTCOME_UNAVAILABLE, "more than the announced 99999 bytes", 2, 2, false },
		{ "reset:5000", BID_OUTCOME_UNAVAILABLE, "broke off after 5000 of 100000 bytes: Connection reset", 2, 2, false },
		{ "reset-headers", BID_OUTCOME_UNAVAILABLE, "broke off without a response: Connection reset", 2, 0, false },
		{ "hang-up", BID_OUTCOME_UNAVAILABLE, "broke off without a response", 2, 0, false },
		{ "redirect:http://127.0.0.1:1{path}", BID_OUTCOME_UNAVAILABLE,
		  "could not connect to 127.0.0.1:1: Connection refused", 2, 0, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_reaction(calm, &cases[i]);
}

/* A transfer ends by a limit in time. All other limits are too long to be reached. */
static void test_time_limits_end_requests(void **state)
{
	static const struct {
		struct reaction reaction;
		unsigned first_byte_ms, stall_ms;
	} cases[] = {
		{ { "stall:5000", BID_OUTCOME_UNAVAILABLE, "stalled after 5000 of 100000 bytes", 2, 2, false }, CALM_MS, 1000 },
		{ { "stall:0", BID_OUTCOME_UNAVAILABLE, "stalled after 0 of 100000 bytes", 2, 2, false }, CALM_MS, 1000 },
		{ { "stall-headers", BID_OUTCOME_UNAVAILABLE, "no response within 1.5 s", 1, 0, false }, 1500, CALM_MS },
		{ { "slow-headers:0.05", BID_OUTCOME_UNAVAILABLE, "no response within 1.5 s", 1, 0, false }, 1500, CALM_MS },
		/* a byte every 50 ms is no stall, but 30 hours for this file */
		{ { "slow:20", BID_OUTCOME_UNAVAILABLE, "too slow: ", 1, 1, false }, 1500, CALM_MS },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bid_fetch_config config = calm;

		config.first_byte_ms = cases[i].first_byte_ms;
		config.answer_ms = cases[i].reaction.heads ? CALM_MS : 0;
		config.stall_ms = cases[i].stall_ms;
		assert_reaction(config, &cases[i].reaction);
	}
}

/* Fetch the source file or section @name, and check the result. */
static void ask_for_part(const char *behaviour, enum bid_kind kind, const char *name, enum bid_outcome outcome, const char *text)
{
	struct bid_artifact artifact = { .kind = kind };
	struct bid_subpath *subpath;
	struct capture capture;
	struct setting setting;
	int r = kind == BID_KIND_SOURCE ? bid_subpath_source(name, &subpath) : bid_subpath_section(name, &subpath);

	assert_int_equal(r, 0);
	assert_int_equal(bid_id_parse_str(ID, &artifact.id), 0);
	artifact.subpath = subpath;
	set_up(&setting, &calm);
	behave(behaviour);
	capture_init(&capture);
	assert_int_equal(setting.server->ops->request(setting.server, &artifact, &receiver, &capture), 0);
	await_done(&capture);
	if (capture.outcome != outcome || strcmp(capture.text, text) != 0)
		fail_msg("%s for %s: %s, \"%s\"", behaviour, name, bid_outcome_name(capture.outcome), capture.text);
	assert_true(outcome != BID_OUTCOME_REJECTED || capture.heads == 0);
	assert_true(outcome == BID_OUTCOME_FOUND || capture.received == 0 || outcome == BID_OUTCOME_UNAVAILABLE);
	tear_down(&setting);
	bid_subpath_unref(subpath);
}

/* Only the transport shows whether text is complete. HTTP/1.0 without a length does not. */
static void test_truncated_text_is_detected(void **state)
{
	static const struct {
		const char *behaviour;
		enum bid_outcome outcome;
		const char *text;
	} cases[] = {
		{ "ok", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "chunked", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "no-length", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "truncate-bare:5000", BID_OUTCOME_UNAVAILABLE, "5000 bytes, which may be incomplete" },
		{ "truncate-bare:100000", BID_OUTCOME_UNAVAILABLE, "100000 bytes, which may be incomplete" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ask_for_part(cases[i].behaviour, BID_KIND_SECTION, ".text", cases[i].outcome, cases[i].text);
}

#define NO_BYTES "no bytes, which may be incomplete"

/* A source file or a section has no id, so a wrong one is undetectable later. */
static void test_html_in_place_of_text_is_rejected(void **state)
{
	static const struct {
		const char *behaviour;
		enum bid_kind kind;
		const char *name;
		enum bid_outcome outcome;
		const char *text;
	} cases[] = {
		{ "ok", BID_KIND_SOURCE, "/a.c", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "html", BID_KIND_SOURCE, "/a.c", BID_OUTCOME_REJECTED, "a web page" },
		{ "html", BID_KIND_SOURCE, "/a.html", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "html", BID_KIND_SOURCE, "/a.HTM", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "html", BID_KIND_SECTION, ".text", BID_OUTCOME_REJECTED, "a web page" },
		{ "html", BID_KIND_SECTION, ".html", BID_OUTCOME_REJECTED, "a web page" },
		{ "encoding:gzip", BID_KIND_SOURCE, "/a.c", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "encoding-chunked:gzip", BID_KIND_SECTION, ".text", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "bad-size-header", BID_KIND_SOURCE, "/a.c", BID_OUTCOME_REJECTED, "announced as 100000 bytes, and as 100001" },
		/* elfutils' server announces the size of the whole file if it has just unpacked the file */
		{ "bad-size-header", BID_KIND_SECTION, ".text", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "bad-size-chunked", BID_KIND_SECTION, ".text", BID_OUTCOME_FOUND, "HTTP 200" },
		/* a source file may be empty: the server announces 0 bytes */
		{ "wrong-id:/dev/null", BID_KIND_SOURCE, "/a.c", BID_OUTCOME_FOUND, "HTTP 200" },
		{ "wrong-id:/dev/null", BID_KIND_SECTION, ".text", BID_OUTCOME_REFUSED, NO_BYTES },
		{ "empty", BID_KIND_SOURCE, "/a.c", BID_OUTCOME_REFUSED, NO_BYTES },
		{ "empty", BID_KIND_SECTION, ".text", BID_OUTCOME_REFUSED, NO_BYTES },
		{ "empty-chunked", BID_KIND_SOURCE, "/a.c", BID_OUTCOME_REFUSED, NO_BYTES },
		{ "empty-chunked", BID_KIND_SECTION, ".text", BID_OUTCOME_REFUSED, NO_BYTES },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ask_for_part(cases[i].behaviour, cases[i].kind, cases[i].name, cases[i].outcome, cases[i].text);
}

static void heal(struct bid_server *server, const char *behaviour)
{
	unsigned faults = (unsigned)(strchr(behaviour, '*')[1] - '0');
	struct capture capture;

	behave(behaviour);
	ask(server, ID, &capture);
	if (capture.outcome != BID_OUTCOME_FOUND)
		fail_msg("%s: %s, \"%s\"", behaviour, bid_outcome_name(capture.outcome), capture.text);
	assert_body(&capture);
	assert_int_equal(requests(), faults + 1);
}

/* A broken download is repeated, and leaves no bytes in the complete body. */
static void test_broken_body_is_downloaded_again(void **state)
{
	static const char *const behaviours[] = {
		"reset:5000*1",
		"truncate:5000*1",
		"truncate-noclen:5000*2",
		"truncate-chunked:70000*1",
		"hang-up*2",
		"bad-size-no-length*1",
		"error:503*2",
		"error:429*1",
		"reset-headers*1",
	};
	struct bid_fetch_config config = calm;
	struct setting setting;

	config.retries = 2;
	set_up(&setting, &config);
	for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++)
		heal(setting.server, behaviours[i]);
	tear_down(&setting);
	config.stall_ms = 1000;
	set_up(&setting, &config);
	heal(setting.server, "stall:5000*1");
	tear_down(&setting);
}

static void test_retry_after_delays_the_retry(void **state)
{
	struct bid_fetch_config config = calm;
	struct capture capture;
	struct setting setting;
	double began;

	config.retries = 1;
	set_up(&setting, &config);
	behave("error:503:1*1");
	began = now();
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_true(capture.done_at - began >= 1.0);
	tear_down(&setting);
}

/* The server knows the limit. The receiver enforces it. */
static void test_max_size_is_refused(void **state)
{
	struct bid_fetch_config config = calm;
	struct capture capture;
	struct setting setting;

	config.max_size = BODY_SIZE - 1;
	set_up(&setting, &config);
	behave("ok");
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_TOO_LARGE);
	assert_string_equal(capture.text, "HTTP 406: File too large, max size=99999");
	assert_int_equal(capture.heads, 0);
	tear_down(&setting);

	config.max_size = BODY_SIZE;
	set_up(&setting, &config);
	behave("ok");
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	tear_down(&setting);
}

static void test_credentials_are_hidden(void **state)
{
	struct bid_fetch *fetch;
	struct bid_server *server;
	struct capture capture;
	char url[128];

	behave("error:403");
	assert_int_equal(bid_fetch_new(&calm, &fetch), 0);
	snprintf(url, sizeof(url), "http://user:secret@127.0.0.1:%u/", world.port);
	assert_int_equal(bid_fetch_server_new(fetch, url, &server), 0);
	assert_string_equal(server->name, world.url);
	ask(server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_REFUSED);
	assert_null(strstr(capture.url, "secret"));
	assert_null(strstr(capture.text, "secret"));
	/* "user:secret" in base64 */
	assert_non_null(strstr(control("GET", "/headers?path=/buildid/" ID "/debuginfo"), "Basic dXNlcjpzZWNyZXQ="));
	server->ops->free(server);
	bid_fetch_free(fetch);
}

static void test_bad_urls_are_refused(void **state)
{
	struct bid_server *server = NULL;
	struct bid_fetch *fetch;

	assert_int_equal(bid_fetch_new(&calm, &fetch), 0);
	assert_int_equal(bid_fetch_server_new(fetch, "ftp://127.0.0.1/", &server), -EPROTONOSUPPORT);
	assert_int_equal(bid_fetch_server_new(fetch, "non sense", &server), -EINVAL);
	assert_null(server);
	bid_fetch_free(fetch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy_server_delivers),
		cmocka_unit_test(test_each_kind_has_its_url),
		cmocka_unit_test(test_each_misbehaviour_has_its_outcome),
		cmocka_unit_test(test_broken_body_is_downloaded_again),
		cmocka_unit_test(test_retry_after_delays_the_retry),
		cmocka_unit_test(test_max_size_is_refused),
		cmocka_unit_test(test_credentials_are_hidden),
		cmocka_unit_test(test_bad_urls_are_refused),
		cmocka_unit_test(test_truncated_text_is_detected),
		cmocka_unit_test(test_html_in_place_of_text_is_rejected),
		cmocka_unit_test(test_request_and_response_fields_are_right),
		cmocka_unit_test(test_time_limits_end_requests),
	};

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
