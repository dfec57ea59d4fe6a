// SPDX-License-Identifier: LGPL-2.1-or-later
/* The HTTP server: headers and secrets of a request, proxies, and requests for the rest of a body. */
#include "fetch_fixture.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/breaker.h"
#include "base/cleanup.h"
#include "base/io.h"

#define PATH "/buildid/" ID "/debuginfo"

/* The header of the last request for PATH, at the world's server or at the one at @port. */
static const char *headers_at(uint16_t port)
{
	uint16_t own = world.port;
	const char *headers;

	world.port = port;
	headers = control("GET", "/headers?path=" PATH);
	world.port = own;
	return headers;
}

static void write_file(char path[static 128], const char *name, const char *text, mode_t mode)
{
	bid_auto_fd int fd = -1;

	snprintf(path, 128, "%s/%s", world.root, name);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(bid_pwrite_full(fd, text, strlen(text), 0), 0);
}

/* A server with user name and password, and with the headers of a file. */
static void set_up_secrets(struct setting *setting, const char *headers_file, const char *netrc_file)
{
	struct bid_fetch_config config = calm;
	char url[128];

	config.headers_file = headers_file;
	config.netrc_file = netrc_file;
	snprintf(url, sizeof(url), "http://%s127.0.0.1:%u", netrc_file ? "" : "user:secret@", world.port);
	assert_int_equal(bid_fetch_new(&config, &setting->fetch), 0);
	assert_int_equal(bid_fetch_server_new(setting->fetch, url, &setting->server), 0);
}

static const char secrets[] = "X-Key: open sesame\r\n\nno header\nX-Bad\001: 1\nCookie: a=b\n: none\n";

/* Secrets go to the server itself, also after a redirect within it, and to no other server. */
static void test_secrets_go_to_their_server_only(void **state)
{
	static const char *const words[] = { "open sesame", "a=b", "Basic dXNlcjpzZWNyZXQ=" };
	char path[128], behaviour[128];
	struct capture capture;
	struct setting setting;
	uint16_t port;
	pid_t other = start_server(NULL, &port);

	write_file(path, "secrets", secrets, 0600);
	set_up_secrets(&setting, path, NULL);
	behave("ok");
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	for (size_t i = 0; i < 3; i++)
		assert_non_null(strstr(headers_at(world.port), words[i]));
	assert_null(strstr(headers_at(world.port), "no header"));
	assert_null(strstr(headers_at(world.port), "X-Bad"));

	behave("redirect:/plain{path}");
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	for (size_t i = 0; i < 3; i++)
		assert_non_null(strstr(control("GET", "/headers?path=/plain" PATH), words[i]));

	/* another port is another server */
	snprintf(behaviour, sizeof(behaviour), "redirect:http://127.0.0.1:%u{path}", port);
	behave(behaviour);
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_body(&capture);
	for (size_t i = 0; i < 3; i++)
		assert_null(strstr(headers_at(port), words[i]));
	assert_null(strstr(headers_at(port), "Authorization"));
	assert_non_null(strstr(headers_at(port), "bidfs/"));
	tear_down(&setting);
	stop_server(other);
	unlink(path);
}

/* A file writable by other users is refused. */
static void test_unsafe_headers_file_is_ignored(void **state)
{
	char path[128];
	struct capture capture;
	struct setting setting;

	for (int i = 0; i < 3; i++) {
		write_file(path, "secrets", secrets, i == 0 ? 0602 : 0644);
		set_up_secrets(&setting, i == 2 ? "/dev/null/none" : path, NULL);
		behave("ok");
		ask(setting.server, ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
		assert_int_equal(strstr(headers_at(world.port), "open sesame") != NULL, i == 1);
		tear_down(&setting);
	}
	unlink(path);
}

/* Names and passwords of a netrc(5) go only to the host named there. */
static void test_netrc_goes_to_its_hosts_only(void **state)
{
	char path[128];
	struct capture capture;
	struct setting setting;

	write_file(path, "netrc", "machine 127.0.0.1 login user password secret\n", 0600);
	set_up_secrets(&setting, NULL, path);
	behave("ok");
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_non_null(strstr(headers_at(world.port), "Basic dXNlcjpzZWNyZXQ="));
	tear_down(&setting);
	unlink(path);
}

/* Requests for the rest of a body that broke off, by kind of server. */
static void test_broken_body_is_resumed(void **state)
{
	static const struct {
		const char *behaviours; /* as a query */
		unsigned requests, heads;
	} cases[] = {
		{ "?behaviour=static:30000*1", 2, 1 },
		{ "?behaviour=static:30000*2", 3, 1 },
		{ "?behaviour=static:20000*4", 5, 1 }, /* more than there are attempts */
		{ "?behaviour=static-truncate:30000*1", 2, 1 },
		/* failed retries in between */
		{ "?behaviour=static:30000*1&behaviour=reset-headers*1", 3, 1 },
		{ "?behaviour=static:30000*1&behaviour=error:503*1", 3, 1 },
		{ "?behaviour=static:30000*1&behaviour=static:50000*1&behaviour=error:503*1", 4, 1 },
		/* debuginfod, a server without parts, and one with weak validators */
		{ "?behaviour=reset:30000*1", 2, 2 },
		{ "?behaviour=static-no-ranges:30000*1", 2, 2 },
		{ "?behaviour=static-weak:30000*1", 2, 2 },
		/* the file has changed: the server sends the whole, or refuses the part */
		{ "?behaviour=static-old:30000*1", 2, 2 },
		{ "?behaviour=static:30000*1&behaviour=error:416*1", 3, 2 },
		/* servers that offer parts and fail to send one: the next request is for the whole */
		{ "?behaviour=static:30000*1&behaviour=part-ignored:60000*1&behaviour=ok", 3, 3 },
		{ "?behaviour=static:30000*1&behaviour=part-shifted*1", 3, 2 },
		{ "?behaviour=static:30000*1&behaviour=part-short*1", 3, 2 },
		{ "?behaviour=static:30000*1&behaviour=part-other*1", 3, 2 },
		{ "?behaviour=static:30000*1&behaviour=part-encoded*1", 3, 2 },
	};
	struct bid_fetch_config config = calm;

	config.retries = 2;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture capture;
		struct setting setting;

		set_up(&setting, &config);
		behave("ok");
		control("POST", "%s&behaviour=static", cases[i].behaviours);
		ask(setting.server, ID, &capture);
		if (capture.outcome != BID_OUTCOME_FOUND)
			fail_msg("%s: %s", cases[i].behaviours, capture.text);
		assert_body(&capture);
		if (requests() != cases[i].requests || capture.heads != cases[i].heads)
			fail_msg("%s: %u requests, %u heads", cases[i].behaviours, requests(), capture.heads);
		tear_down(&setting);
	}
}

/* Count the bodies that break off; an error in place of a body does not count. */
static void test_broken_bodies_are_counted(void **state)
{
	static const struct {
		const char *behaviours; /* as a query */
		unsigned broken;
	} cases[] = {
		{ "?behaviour=reset:30000*2", 2 },
		{ "?behaviour=error:503*2", 0 },
		{ "?behaviour=error:503*1&behaviour=reset:30000*1", 1 },
		{ "?behaviour=static:30000*1&behaviour=error:503*1", 1 },
		{ "?behaviour=reset-headers*2", 0 },
	};
	struct bid_fetch_config config = calm;

	config.retries = 2;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture capture;
		struct setting setting;

		set_up(&setting, &config);
		behave("ok");
		control("POST", "%s&behaviour=static", cases[i].behaviours);
		ask(setting.server, ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
		assert_body(&capture);
		if (capture.broken != cases[i].broken)
			fail_msg("%s: broke off %u times", cases[i].behaviours, capture.broken);
		tear_down(&setting);
	}
}

/* An unrequested range is no artifact. */
static void test_unrequested_range_is_rejected(void **state)
{
	struct capture capture;
	struct setting setting;

	set_up(&setting, &calm);
	behave("part-always");
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_REFUSED);
	assert_string_equal(capture.text, "HTTP 206");
	assert_int_equal(capture.heads, 0);
	tear_down(&setting);
}

/* Limit of the whole download, even one that makes progress. */
static void test_max_time_ends_the_download(void **state)
{
	static const char *const behaviours[] = { "slow:2000", "error:503", "stall-headers" };
	struct bid_fetch_config config = calm;
	struct capture capture;
	struct setting setting;

	config.retries = 10;
	config.max_time_ms = 400;
	for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
		double began = now();

		set_up(&setting, &config);
		behave(behaviours[i]);
		ask(setting.server, ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_UNAVAILABLE);
		if (i != 1)
			assert_string_equal(capture.text, "not done within 0.4 s");
		assert_true(now() - began < 15);
		tear_down(&setting);
	}
}

/* libcurl follows the variables for proxies. */
static void test_proxy_gets_the_request(void **state)
{
	struct bid_fetch_config config = calm;
	struct capture capture;
	struct bid_server *server;
	struct bid_fetch *fetch;
	char proxy[64];

	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", world.port);
	for (int avoided = 0; avoided < 2; avoided++) {
		setenv("http_proxy", proxy, 1);
		setenv("no_proxy", avoided ? ".invalid" : "localhost", 1);
		behave("ok");
		/* without a resolver, a look-up may last until the limit */
		config.connect_ms = avoided ? 1000 : CALM_MS;
		assert_int_equal(bid_fetch_new(&config, &fetch), 0);
		assert_int_equal(bid_fetch_server_new(fetch, "http://debuginfod.invalid", &server), 0);
		ask(server, ID, &capture);
		assert_int_equal(capture.outcome, avoided ? BID_OUTCOME_UNAVAILABLE : BID_OUTCOME_FOUND);
		assert_int_equal(requests(), avoided ? 0 : 1);
		server->ops->free(server);
		bid_fetch_free(fetch);
	}
	unsetenv("http_proxy");
	unsetenv("no_proxy");
}

static void test_connection_that_fails_names_the_address_of_the_proxy(void **state)
{
	static const struct {
		const char *variable, *proxy, *no_proxy, *server, *text;
	} cases[] = {
		{ "http_proxy", "http://eve:mallory@127.0.0.1:1", "localhost", "http://debuginfod.invalid",
		  "could not connect to 127.0.0.1:1: Connection refused" },
		{ "http_proxy", "http://127.0.0.1:1", "localhost", "http://debuginfod.invalid:1",
		  "could not connect to 127.0.0.1:1: Connection refused" },
		{ "https_proxy", "127.0.0.1:1", "localhost", "https://debuginfod.invalid", "could not connect to 127.0.0.1:1: " },
		{ "ALL_PROXY", "socks5h://127.0.0.1", "localhost", "http://debuginfod.invalid",
		  "could not connect to 127.0.0.1:1080: " },
		{ "http_proxy", "http://eve:mallory@proxy.invalid:3128", "localhost", "http://debuginfod.invalid",
		  "could not resolve the proxy: proxy.invalid" },
		{ "http_proxy", "http://127.0.0.1:1", "127.0.0.1", "http://127.0.0.1:2",
		  "could not connect to 127.0.0.1:2: Connection refused" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture capture;
		struct bid_server *server;
		struct bid_fetch *fetch;

		setenv(cases[i].variable, cases[i].proxy, 1);
		setenv("no_proxy", cases[i].no_proxy, 1);
		assert_int_equal(bid_fetch_new(&calm, &fetch), 0);
		assert_int_equal(bid_fetch_server_new(fetch, cases[i].server, &server), 0);
		ask(server, ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_UNAVAILABLE);
		if (strncmp(capture.text, cases[i].text, strlen(cases[i].text)) != 0 || strstr(capture.text, "mallory"))
			fail_msg("%zu: %s", i, capture.text);
		server->ops->free(server);
		bid_fetch_free(fetch);
		unsetenv(cases[i].variable);
	}
	unsetenv("no_proxy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secrets_go_to_their_server_only),
		cmocka_unit_test(test_unsafe_headers_file_is_ignored),
		cmocka_unit_test(test_netrc_goes_to_its_hosts_only),
		cmocka_unit_test(test_broken_body_is_resumed),
		cmocka_unit_test(test_broken_bodies_are_counted),
		cmocka_unit_test(test_unrequested_range_is_rejected),
		cmocka_unit_test(test_proxy_gets_the_request),
		cmocka_unit_test(test_connection_that_fails_names_the_address_of_the_proxy),
		/* last: the server may count its requests late */
		cmocka_unit_test(test_max_time_ends_the_download),
	};

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
