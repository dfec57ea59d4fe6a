// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The HTTP server against thousands of malformed responses. Each must end, once and in time, and none may count as a valid file.
 * BID_FUZZ_RESPONSES is their number, BID_FUZZ_FIRST the first; each run has the same ones.
 */
#include "fetch_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../random.h"
#include "base/cleanup.h"

#define RESPONSES    4000
#define RESPONSE_MAX (160 * 1024)

/* A server that sends the n-th response to the n-th connection, and hangs up. */
struct scribe {
	int listener;
	uint16_t port;
	pthread_t thread;
	atomic_bool stopping;
	atomic_uint seed;
	char *text;
	size_t len;
	uint64_t random;
};

static size_t below(struct scribe *scribe, size_t n)
{
	return (size_t)(next_random(&scribe->random) % n);
}

static void append(struct scribe *scribe, const char *text, size_t len)
{
	if (len > RESPONSE_MAX - scribe->len)
		len = RESPONSE_MAX - scribe->len;
	memcpy(scribe->text + scribe->len, text, len);
	scribe->len += len;
}

#define PICK(scribe, list) ((list)[below(scribe, sizeof(list) / sizeof((list)[0]))])

static void append_text(struct scribe *scribe, const char *text)
{
	append(scribe, text, strlen(text));
}

/* Most of a response is valid, or the parser would stop early. */
static bool usually(struct scribe *scribe)
{
	return below(scribe, 8) != 0;
}

static void append_status_line(struct scribe *scribe)
{
	static const char *const usual[] = { " 200 OK", " 200 OK", " 404 no", " 302 there" };
	static const char *const versions[] = { "HTTP/1.1", "HTTP/1.1",	  "HTTP/1.1", "HTTP/1.0",	"HTTP/0.9",
						"HTTP/2",   "HTTP/3.0",	  "HTTP/1.",  "http/1.1",	"ICY",
						"HTTP",	    "HTTP/1.1\t", "",	      "HTTP/11111111.1" };
	static const char *const codes[] = { " 200 OK",	   " 200",	 " 200\t",     " 404 no", " 206 part", " 302 there",
					     " 100 go on", " 101 other", " 20",	       " 2000",	  " -200",     " 999 what",
					     " 000",	   "  200",	 " 503 later", "" };

	append_text(scribe, usually(scribe) ? "HTTP/1.1" : PICK(scribe, versions));
	append_text(scribe, usually(scribe) ? PICK(scribe, usual) : PICK(scribe, codes));
}

static void append_field(struct scribe *scribe)
{
	static const char *const names[] = { "Content-Length",
					     "Content-Length",
					     "Transfer-Encoding",
					     "Content-Encoding",
					     "X-DEBUGINFOD-SIZE",
					     "X-DEBUGINFOD-FILE",
					     "X-DEBUGINFOD-IMASIGNATURE",
					     "ETag",
					     "Accept-Ranges",
					     "Content-Range",
					     "Location",
					     "Retry-After",
					     "Connection",
					     "Last-Modified",
					     "Set-Cookie",
					     "Trailer",
					     "Upgrade",
					     "Alt-Svc",
					     "",
					     " X-Folded" };
	static const char *const separators[] = { ": ", ": ", ": ", ":", " : ", ":\t\t", "", ":\r\n ", ":\v" };
	static const char *const values[] = { "0",
					      "20",
					      "100",
					      "-1",
					      "+20",
					      "20, 20",
					      "20,21",
					      "99999999999999999999",
					      "0x14",
					      "1099511627776",
					      "chunked",
					      "gzip, chunked",
					      "identity",
					      "gzip",
					      "\"tag\"",
					      "W/\"t\"",
					      "bytes",
					      "bytes 0-19/20",
					      "bytes 5-4/3",
					      "bytes */20",
					      "/elsewhere",
					      "file:///etc/passwd",
					      "?",
					      "close",
					      "keep-alive",
					      "h2c",
					      "Thu, 01 Jan 1970 00:00:00 GMT",
					      "00ff",
					      "0f0",
					      "junk\001\177\200\377",
					      "" };

	append_text(scribe, PICK(scribe, names));
	append_text(scribe, usually(scribe) ? ": " : PICK(scribe, separators));
	append_text(scribe, PICK(scribe, values));
}

static void append_line_end(struct scribe *scribe)
{
	static const char *const ends[] = { "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n", "\n\r" };

	append_text(scribe, usually(scribe) ? "\r\n" : PICK(scribe, ends));
}

static void append_body(struct scribe *scribe)
{
	static const char *const chunks[] = { "5\r\nhello\r\n",
					      "0\r\n\r\n",
					      "0\r\nX-Trailer: 1\r\n\r\n",
					      "ffffffffffffffff\r\nx",
					      "-1\r\n",
					      "5;name=value\r\nhello\r\n",
					      "5\nhello\n",
					      "g\r\n",
					      "\r\n",
					      "00000005\r\nhello\r\n" };
	size_t n = below(scribe, 5);

	for (size_t i = 0; i < n; i++)
		if (below(scribe, 2))
			append_text(scribe, PICK(scribe, chunks));
		else
			append(scribe, (const char *)world.body, below(scribe, 60));
}

/* Bits, bytes, NULs, and ends that are missing. Except in a redirect: the name could become another host's. */
static void damage(struct scribe *scribe)
{
	size_t n = below(scribe, 4);

	for (size_t i = 0; i < n && scribe->len > 0; i++) {
		size_t at = below(scribe, scribe->len);

		switch (below(scribe, 4)) {
		case 0:
			scribe->text[at] ^= (char)(1 << below(scribe, 8));
			break;
		case 1:
			scribe->text[at] = (char)next_random(&scribe->random);
			break;
		case 2:
			scribe->text[at] = '\0';
			break;
		default:
			scribe->len = at;
			break;
		}
	}
}

static void write_response(struct scribe *scribe, unsigned seed)
{
	size_t fields, lines;

	scribe->random = seed;
	scribe->len = 0;
	for (size_t response = below(scribe, 8) == 0 ? below(scribe, 40) : 0;; response--) {
		append_status_line(scribe);
		append_line_end(scribe);
		fields = below(scribe, 6);
		for (size_t i = 0; i < fields; i++) {
			append_field(scribe);
			append_line_end(scribe);
		}
		/* a header that does not end, in lines or in length */
		lines = below(scribe, 40) == 0 ? below(scribe, 5000) : 0;
		for (size_t i = 0; i < lines; i++)
			append_text(scribe, "X-More: of it\r\n");
		if (below(scribe, 40) == 0)
			append(scribe, (const char *)world.body, below(scribe, BODY_SIZE));
		append_line_end(scribe);
		if (response == 0)
			break;
	}
	append_body(scribe);
	if (!memmem(scribe->text, scribe->len, "ocation", 7))
		damage(scribe);
}

static void serve(struct scribe *scribe, int fd)
{
	char artifact[4096];
	size_t sent = 0;

	if (recv(fd, artifact, sizeof(artifact), 0) <= 0)
		return;
	write_response(scribe, scribe->seed);
	while (sent < scribe->len) {
		ssize_t n = send(fd, scribe->text + sent, scribe->len - sent, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		sent += (size_t)n;
	}
	/* unread bytes would turn the end into a reset */
	shutdown(fd, SHUT_WR);
	while (recv(fd, artifact, sizeof(artifact), 0) > 0)
		;
}

static void *scribe_main(void *argument)
{
	struct scribe *scribe = argument;

	while (!scribe->stopping) {
		struct pollfd ready = { .fd = scribe->listener, .events = POLLIN };

		if (poll(&ready, 1, 100) == 1) {
			bid_auto_fd int fd = accept4(scribe->listener, NULL, NULL, SOCK_CLOEXEC);

			if (fd >= 0)
				serve(scribe, fd);
		}
	}
	return NULL;
}

static void start_scribe(struct scribe *scribe)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	*scribe = (struct scribe){ .text = malloc(RESPONSE_MAX) };
	assert_non_null(scribe->text);
	scribe->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(scribe->listener >= 0);
	assert_int_equal(bind(scribe->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(scribe->listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(listen(scribe->listener, 16), 0);
	scribe->port = ntohs(address.sin_port);
	assert_int_equal(pthread_create(&scribe->thread, NULL, scribe_main, scribe), 0);
}

static void stop_scribe(struct scribe *scribe)
{
	scribe->stopping = true;
	pthread_join(scribe->thread, NULL);
	close(scribe->listener);
	free(scribe->text);
}

static void judge(unsigned seed, const struct capture *capture, unsigned counts[BID_OUTCOME_COUNT])
{
	if (capture->dones != 1 || capture->outcome == BID_OUTCOME_NONE || capture->outcome == BID_OUTCOME_CANCELLED)
		fail_msg("response %u: %u ends, %s", seed, capture->dones, bid_outcome_name(capture->outcome));
	if (strstr(capture->text, " within ") || capture->received > CAPTURE_MAX)
		fail_msg("response %u: \"%s\" after %zu bytes", seed, capture->text, (size_t)capture->received);
	if (capture->outcome == BID_OUTCOME_FOUND && capture->heads == 1 && capture->size != BID_SIZE_UNKNOWN &&
	    capture->received != capture->size)
		fail_msg("response %u: found %zu of %zu bytes", seed, (size_t)capture->received, (size_t)capture->size);
	for (const char *c = capture->text; *c; c++)
		if ((unsigned char)*c < ' ')
			fail_msg("response %u: control character in \"%s\"", seed, capture->text);
	counts[capture->outcome]++;
}

static unsigned number_of(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void test_malformed_responses_end_in_time(void **state)
{
	unsigned first = number_of("BID_FUZZ_FIRST", 0), n = number_of("BID_FUZZ_RESPONSES", RESPONSES),
		 counts[BID_OUTCOME_COUNT] = { 0 };
	struct scribe scribe;
	struct bid_fetch *fetch;
	char url[64];

	start_scribe(&scribe);
	assert_int_equal(bid_fetch_new(&calm, &fetch), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", scribe.port);
	for (unsigned seed = first; seed < first + n; seed++) {
		struct bid_server *server;
		struct capture capture;

		/* a server of its own for each: a breaker would soon have enough */
		assert_int_equal(bid_fetch_server_new(fetch, url, &server), 0);
		scribe.seed = seed;
		ask(server, ID, &capture);
		judge(seed, &capture, counts);
		server->ops->free(server);
	}
	bid_fetch_free(fetch);
	stop_scribe(&scribe);
	for (int outcome = 0; outcome < BID_OUTCOME_COUNT; outcome++)
		if (counts[outcome])
			print_message("%6u %s\n", counts[outcome], bid_outcome_name((enum bid_outcome)outcome));
	/* a mix: wilder responses would be rejected early */
	assert_true(n < RESPONSES || (counts[BID_OUTCOME_FOUND] > n / 100 && counts[BID_OUTCOME_ABSENT] > n / 100));
	assert_true(n < RESPONSES || (counts[BID_OUTCOME_REFUSED] > n / 100 && counts[BID_OUTCOME_UNAVAILABLE] > n / 100));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_malformed_responses_end_in_time) };

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
