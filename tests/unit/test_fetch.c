// SPDX-License-Identifier: LGPL-2.1-or-later
/* The source that speaks HTTP, against tests/faults/server.py: what it makes of each way in which a server can behave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bid/fetch.h>

#include "base/cleanup.h"
#include "base/io.h"

#define BODY_SIZE	100000
#define ID		"00112233445566778899aabbccddeeff00112233"
#define OTHER_ID	"ffeeddccbbaa99887766554433221100ffeeddcc"
#define ABSENT_ID	"0123456789abcdef0123456789abcdef01234567"
#define PATIENCE_S	30	/* a test that waits longer has failed */

/* The world of all tests: a directory with two artifacts, and the server that serves it. */
static struct {
	char root[64];
	pid_t server;
	uint16_t port;
	char url[64];
	unsigned char body[BODY_SIZE];
} world;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	bid_auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return bid_steal_fd(&fd);
}

/* Tell the server something, and return the body of its answer. */
static const char *control(const char *method, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *control(const char *method, const char *format, ...)
{
	static char answer[8192];
	char path[512], request[1024];
	size_t len = 0;
	va_list arguments;
	bid_auto_fd int fd = connect_to(world.port);
	char *body;

	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	assert_true(fd >= 0);
	snprintf(request, sizeof(request), "%s /control%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", method, path);
	assert_int_equal(write(fd, request, strlen(request)), strlen(request));
	while (len < sizeof(answer) - 1) {
		ssize_t n = read(fd, answer + len, sizeof(answer) - 1 - len);

		assert_true(n >= 0);
		if (n == 0)
			break;
		len += (size_t)n;
	}
	answer[len] = '\0';
	if (strncmp(answer, "HTTP/1.1 200", 12) != 0)
		fail_msg("%s: %s", path, answer);
	body = strstr(answer, "\r\n\r\n");
	assert_non_null(body);
	return body + 4;
}

static void behave(const char *behaviour)
{
	control("POST", "/reset");
	control("POST", "?behaviour=%s", behaviour);
}

static unsigned requests(void)
{
	return (unsigned)strtoul(control("GET", "/count"), NULL, 10);
}

static unsigned statistic(const char *name)
{
	char key[32];
	const char *found;

	snprintf(key, sizeof(key), "\"%s\": ", name);
	found = strstr(control("GET", "/stats"), key);
	assert_non_null(found);
	return (unsigned)strtoul(found + strlen(key), NULL, 10);
}

/* What a receiver was told. */
struct capture {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned heads, dones;
	uint64_t size;			/* of the last head */
	unsigned char body[BODY_SIZE];	/* since the last head */
	uint64_t received;
	int head_result, body_result;
	enum bid_outcome outcome;
	char text[256], url[256], file[256];
	uint64_t answered_size;
	double done_at;
	void (*on_done)(struct capture *capture);
	struct bid_source *next_source;	/* for on_done */
	struct capture *next_capture;
};

static int capture_head(void *user, uint64_t size)
{
	struct capture *capture = user;
	int r;

	pthread_mutex_lock(&capture->lock);
	capture->heads++;
	capture->size = size;
	capture->received = 0;
	r = capture->head_result;
	pthread_cond_broadcast(&capture->changed);
	pthread_mutex_unlock(&capture->lock);
	return r;
}

static int capture_body(void *user, const void *data, size_t len)
{
	struct capture *capture = user;
	int r;

	pthread_mutex_lock(&capture->lock);
	if (capture->received + len <= BODY_SIZE)
		memcpy(capture->body + capture->received, data, len);
	capture->received += len;
	r = capture->body_result;
	pthread_cond_broadcast(&capture->changed);
	pthread_mutex_unlock(&capture->lock);
	return r;
}

static void capture_done(void *user, const struct bid_answer *answer)
{
	struct capture *capture = user;

	if (capture->on_done)
		capture->on_done(capture);
	pthread_mutex_lock(&capture->lock);
	capture->dones++;
	capture->outcome = answer->outcome;
	snprintf(capture->text, sizeof(capture->text), "%s", answer->text);
	snprintf(capture->url, sizeof(capture->url), "%s", answer->url);
	snprintf(capture->file, sizeof(capture->file), "%s", answer->file ? answer->file : "");
	capture->answered_size = answer->size;
	capture->done_at = now();
	pthread_cond_broadcast(&capture->changed);
	pthread_mutex_unlock(&capture->lock);
}

static const struct bid_receiver receiver = { .head = capture_head, .body = capture_body, .done = capture_done };

static void capture_init(struct capture *capture)
{
	*capture = (struct capture){ .dones = 0 };
	pthread_mutex_init(&capture->lock, NULL);
	pthread_cond_init(&capture->changed, NULL);
}

/* Wait until @counter, a field of @capture, is at least @count. */
static void await(struct capture *capture, const unsigned *counter, unsigned count)
{
	struct timespec deadline;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&capture->lock);
	while (*counter < count && r == 0)
		r = pthread_cond_timedwait(&capture->changed, &capture->lock, &deadline);
	pthread_mutex_unlock(&capture->lock);
	assert_int_equal(r, 0);
}

static void await_done(struct capture *capture)
{
	await(capture, &capture->dones, 1);
}

/* Wait until so many requests have reached the server. */
static void await_requests(unsigned count)
{
	double deadline = now() + PATIENCE_S;

	while (requests() < count) {
		assert_true(now() < deadline);
		usleep(5000);
	}
}

static uint64_t start(struct bid_source *source, const char *id, enum bid_kind kind, struct capture *capture)
{
	struct bid_request request = { .kind = kind };
	uint64_t number = 0;

	assert_int_equal(bid_id_parse_str(id, &request.id), 0);
	assert_int_equal(source->ops->start(source, &request, &receiver, capture, &number), 0);
	assert_int_not_equal(number, 0);
	return number;
}

static void ask(struct bid_source *source, const char *id, struct capture *capture)
{
	capture_init(capture);
	start(source, id, BID_KIND_DEBUGINFO, capture);
	await_done(capture);
}

static void assert_body(const struct capture *capture)
{
	assert_int_equal(capture->received, BODY_SIZE);
	assert_memory_equal(capture->body, world.body, BODY_SIZE);
}

/* A fetcher with short times, and one server. */
struct setting {
	struct bid_fetch *fetch;
	struct bid_source *source;
};

static const struct bid_fetch_config quick = {
	.connect_ms = 1000,
	.first_byte_ms = 600,
	.stall_ms = 400,
	.retries = 0,
	.parallel = 2,
};

static void set_up(struct setting *setting, const struct bid_fetch_config *config)
{
	assert_int_equal(bid_fetch_new(config, &setting->fetch), 0);
	assert_int_equal(bid_fetch_server_new(setting->fetch, world.url, &setting->source), 0);
}

static void tear_down(struct setting *setting)
{
	setting->source->ops->free(setting->source);
	bid_fetch_free(setting->fetch);
}

static void test_healthy(void **state)
{
	struct bid_fetch_config config = quick;
	struct capture capture;
	struct setting setting;
	char expected[256];
	const char *header;

	behave("ok");
	config.max_size = 5 * BODY_SIZE;
	set_up(&setting, &config);
	assert_string_equal(setting.source->name, world.url);
	ask(setting.source, ID, &capture);

	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_body(&capture);
	assert_int_equal(capture.heads, 1);
	assert_int_equal(capture.size, BODY_SIZE);
	assert_int_equal(capture.answered_size, BODY_SIZE);
	assert_string_equal(capture.text, "HTTP 200");
	snprintf(expected, sizeof(expected), "%s/buildid/" ID "/debuginfo", world.url);
	assert_string_equal(capture.url, expected);
	snprintf(expected, sizeof(expected), "%s/" ID "/debuginfo", world.root);
	assert_string_equal(capture.file, expected);

	header = control("GET", "/headers?path=/buildid/" ID "/debuginfo");
	assert_non_null(strstr(header, "\"User-Agent\": \"bidfs/" BID_VERSION " (+debuginfod client)\""));
	assert_non_null(strstr(header, "\"X-DEBUGINFOD-MAXSIZE\": \"500000\""));
	assert_null(strstr(header, "Accept-Encoding"));
	tear_down(&setting);
}

static void test_kinds(void **state)
{
	static const enum bid_kind others[] = { BID_KIND_NONE, BID_KIND_KALLSYMS, BID_KIND_PROBES, BID_KIND_VDSO, BID_KIND_COUNT };
	struct setting setting;
	struct capture capture;
	uint64_t number = 4711;

	behave("ok");
	set_up(&setting, &quick);
	capture_init(&capture);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct bid_request request = { .kind = others[i] };

		assert_int_equal(bid_id_parse_str(ID, &request.id), 0);
		assert_int_equal(setting.source->ops->start(setting.source, &request, &receiver, &capture, &number), -EOPNOTSUPP);
		assert_int_equal(number, 4711);
	}
	start(setting.source, ID, BID_KIND_ELF, &capture);
	await_done(&capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(strtoul(control("GET", "/count?path=/buildid/" ID "/executable"), NULL, 10), 1);
	assert_int_equal(requests(), 1);
	tear_down(&setting);
}

/* Every behaviour, with two tries allowed: what comes of it, and what it costs. */
static void test_behaviours(void **state)
{
	static const struct {
		const char *behaviour;
		enum bid_outcome outcome;
		const char *text;	/* the answer's begins so */
		unsigned requests, heads;
		bool whole;		/* the body was delivered as it is */
	} cases[] = {
		{ "chunked", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "no-length", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "close", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "lower-case", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "early-hints", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "delay:0.2", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "slow:200000", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "many-headers:30000", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "redirect:/plain{path}", BID_OUTCOME_FOUND, "HTTP 200", 2, 1, true },
		{ "redirect-chain:5", BID_OUTCOME_FOUND, "HTTP 200", 6, 1, true },
		/* a size that contradicts a complete body of known length is for the receiver's own checks */
		{ "bad-size-header", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, true },
		{ "html", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, false },
		{ "empty", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, false },
		/* nothing in HTTP tells */
		{ "truncate-bare:5000", BID_OUTCOME_FOUND, "HTTP 200", 1, 1, false },
		{ "absent", BID_OUTCOME_ABSENT, "HTTP 404", 1, 0, false },
		{ "gone", BID_OUTCOME_ABSENT, "HTTP 410", 1, 0, false },
		{ "error:406", BID_OUTCOME_TOO_LARGE, "HTTP 406: trouble on purpose", 1, 0, false },
		{ "error:501", BID_OUTCOME_UNSUPPORTED, "HTTP 501", 1, 0, false },
		{ "error:422", BID_OUTCOME_UNSUPPORTED, "HTTP 422", 1, 0, false },
		{ "error:503::invalid%20buildid", BID_OUTCOME_UNSUPPORTED, "HTTP 503: invalid buildid", 1, 0, false },
		{ "error:400", BID_OUTCOME_REFUSED, "HTTP 400", 1, 0, false },
		{ "error:401", BID_OUTCOME_REFUSED, "HTTP 401", 1, 0, false },
		{ "error:403", BID_OUTCOME_REFUSED, "HTTP 403", 1, 0, false },
		{ "error:407", BID_OUTCOME_REFUSED, "HTTP 407", 1, 0, false },
		{ "error:500", BID_OUTCOME_UNREACHABLE, "HTTP 500: trouble on purpose", 2, 0, false },
		{ "error:502", BID_OUTCOME_UNREACHABLE, "HTTP 502", 2, 0, false },
		{ "error:503", BID_OUTCOME_UNREACHABLE, "HTTP 503", 2, 0, false },
		{ "error:522", BID_OUTCOME_UNREACHABLE, "HTTP 522", 2, 0, false },
		{ "error:429", BID_OUTCOME_UNREACHABLE, "HTTP 429", 2, 0, false },
		{ "error:503:120", BID_OUTCOME_UNREACHABLE, "HTTP 503: trouble on purpose (to be asked again in 120 s)", 1, 0, false },
		{ "error:503:junk", BID_OUTCOME_UNREACHABLE, "HTTP 503: trouble on purpose", 2, 0, false },
		{ "error:503:-1", BID_OUTCOME_UNREACHABLE, "HTTP 503: trouble on purpose", 2, 0, false },
		{ "encoded", BID_OUTCOME_REFUSED, "came in an encoding", 1, 0, false },
		{ "redirect:file:///etc/passwd", BID_OUTCOME_REFUSED, "redirected to where we do not follow", 1, 0, false },
		{ "redirect:ftp://127.0.0.1/", BID_OUTCOME_REFUSED, "redirected to where we do not follow", 1, 0, false },
		{ "redirect-loop", BID_OUTCOME_REFUSED, "redirected too often", 6, 0, false },
		{ "redirect-chain:6", BID_OUTCOME_REFUSED, "redirected too often", 6, 0, false },
		{ "many-headers:100000", BID_OUTCOME_REFUSED, "header above 65536 bytes", 1, 0, false },
		{ "garbage", BID_OUTCOME_REFUSED, "does not speak HTTP", 1, 0, false },
		{ "truncate:5000", BID_OUTCOME_UNREACHABLE, "cut short: 5000 of 100000 bytes", 2, 2, false },
		{ "truncate:0", BID_OUTCOME_UNREACHABLE, "cut short: 0 of 100000 bytes", 2, 2, false },
		{ "truncate:99999", BID_OUTCOME_UNREACHABLE, "cut short: 99999 of 100000 bytes", 2, 2, false },
		{ "truncate-noclen:5000", BID_OUTCOME_UNREACHABLE, "cut short: 5000 of 100000 bytes", 2, 2, false },
		{ "truncate-noclen:0", BID_OUTCOME_UNREACHABLE, "cut short: 0 of 100000 bytes", 2, 2, false },
		{ "truncate-chunked:5000", BID_OUTCOME_UNREACHABLE, "cut short: 5000 bytes", 2, 2, false },
		{ "big-length", BID_OUTCOME_UNREACHABLE, "cut short: 100000 of 1099511627776 bytes", 2, 2, true },
		{ "bad-size-no-length", BID_OUTCOME_UNREACHABLE, "cut short: 100000 of 100001 bytes", 2, 2, true },
		{ "bad-size-no-length:99999", BID_OUTCOME_UNREACHABLE, "more than the announced 99999 bytes", 2, 2, false },
		{ "reset:5000", BID_OUTCOME_UNREACHABLE, "broke off after 5000 of 100000 bytes: Connection reset", 2, 2, false },
		{ "reset-headers", BID_OUTCOME_UNREACHABLE, "broke off without an answer: Connection reset", 2, 0, false },
		{ "hang-up", BID_OUTCOME_UNREACHABLE, "broke off without an answer", 2, 0, false },
		{ "stall:5000", BID_OUTCOME_UNREACHABLE, "stalled after 5000 of 100000 bytes", 2, 2, false },
		{ "stall:0", BID_OUTCOME_UNREACHABLE, "stalled after 0 of 100000 bytes", 2, 2, false },
		{ "stall-headers", BID_OUTCOME_UNREACHABLE, "no answer within 0.6 s", 1, 0, false },
		{ "slow-headers:0.05", BID_OUTCOME_UNREACHABLE, "no answer within 0.6 s", 1, 0, false },
		/* a byte every 50 ms is no stall, but 30 hours for this file */
		{ "slow:20", BID_OUTCOME_UNREACHABLE, "too slow: ", 1, 1, false },
	};
	struct bid_fetch_config config = quick;
	struct setting setting;

	config.retries = 1;
	set_up(&setting, &config);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture capture;
		double began = now();
		bool whole;

		behave(cases[i].behaviour);
		ask(setting.source, ID, &capture);
		whole = capture.received == BODY_SIZE && memcmp(capture.body, world.body, BODY_SIZE) == 0;
		if (capture.outcome != cases[i].outcome || strncmp(capture.text, cases[i].text, strlen(cases[i].text)) != 0)
			fail_msg("%s: %s, \"%s\"", cases[i].behaviour, bid_outcome_name(capture.outcome), capture.text);
		if (requests() != cases[i].requests || capture.heads != cases[i].heads || whole != cases[i].whole)
			fail_msg("%s: %u requests, %u heads, body of %" PRIu64 " bytes", cases[i].behaviour, requests(), capture.heads,
				 capture.received);
		/* two tries, the pause between them, and much for a busy machine */
		if (now() - began > 5)
			fail_msg("%s: %g s", cases[i].behaviour, now() - began);
		control("POST", "/release");
	}
	tear_down(&setting);
}

/* What broke once is fetched again, and nothing of the broken body is left in the whole one. */
static void test_healing(void **state)
{
	static const char *const behaviours[] = {
		"reset:5000*1", "truncate:5000*1",     "truncate-noclen:5000*2", "truncate-chunked:70000*1", "stall:5000*1",
		"hang-up*2",	"bad-size-no-length*1", "error:503*2",		 "error:429*1",		     "reset-headers*1",
	};
	struct bid_fetch_config config = quick;
	struct setting setting;

	config.retries = 2;
	set_up(&setting, &config);
	for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
		unsigned faults = (unsigned)(strchr(behaviours[i], '*')[1] - '0');
		struct capture capture;

		behave(behaviours[i]);
		ask(setting.source, ID, &capture);
		if (capture.outcome != BID_OUTCOME_FOUND)
			fail_msg("%s: %s, \"%s\"", behaviours[i], bid_outcome_name(capture.outcome), capture.text);
		assert_body(&capture);
		assert_int_equal(requests(), faults + 1);
	}
	tear_down(&setting);
}

static void test_retry_after(void **state)
{
	struct bid_fetch_config config = quick;
	struct capture capture;
	struct setting setting;
	double began;

	config.retries = 1;
	set_up(&setting, &config);
	behave("error:503:1*1");
	began = now();
	ask(setting.source, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_true(capture.done_at - began >= 1.0);
	tear_down(&setting);
}

/* An idle connection that a firewall has forgotten looks like a silent server, and is not one. */
static void test_forgotten_connection(void **state)
{
	struct bid_fetch_config config = quick;
	struct capture capture;
	struct setting setting;

	config.retries = 1;
	set_up(&setting, &config);
	behave("ok");
	ask(setting.source, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);

	control("POST", "?behaviour=stall-headers*1");
	ask(setting.source, OTHER_ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(requests(), 3);
	tear_down(&setting);
}

/* Misses are what a debugger asks for most; none may cost a connection. */
static void test_connection_reuse(void **state)
{
	static const char *const ids[] = { ABSENT_ID, ID, ABSENT_ID, OTHER_ID, ABSENT_ID, ABSENT_ID };
	struct setting setting;
	unsigned before, controls = 1;

	set_up(&setting, &quick);
	behave("ok");
	before = statistic("connections");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct capture capture;

		ask(setting.source, ids[i], &capture);
		assert_int_equal(capture.outcome, strcmp(ids[i], ABSENT_ID) == 0 ? BID_OUTCOME_ABSENT : BID_OUTCOME_FOUND);
	}
	assert_int_equal(statistic("connections"), before + controls + 1);
	tear_down(&setting);
}

/* More requests than turns: they wait in line, and the clock of each starts with its turn. */
static void test_turns(void **state)
{
	enum { N = 8 };
	static struct capture captures[N];
	struct setting setting;

	set_up(&setting, &quick);
	behave("delay:0.3");
	for (size_t i = 0; i < N; i++) {
		capture_init(&captures[i]);
		start(setting.source, i % 2 ? ID : OTHER_ID, BID_KIND_DEBUGINFO, &captures[i]);
	}
	for (size_t i = 0; i < N; i++) {
		await_done(&captures[i]);
		assert_int_equal(captures[i].outcome, BID_OUTCOME_FOUND);
		assert_body(&captures[i]);
	}
	assert_int_equal(statistic("peak"), 2);
	/* first come, first served: with two turns nobody ends before the last but one */
	for (size_t i = 2; i < N; i++)
		assert_true(captures[i].done_at > captures[i - 2].done_at);
	tear_down(&setting);
}

/* One silent server does not hold up another. */
static void test_two_servers(void **state)
{
	struct capture silent, healthy;
	struct bid_source *other;
	struct setting setting;
	char url[128];

	behave("stall-headers");
	set_up(&setting, &quick);
	snprintf(url, sizeof(url), "%s/plain", world.url);
	assert_int_equal(bid_fetch_server_new(setting.fetch, url, &other), 0);
	capture_init(&silent);
	start(setting.source, ID, BID_KIND_DEBUGINFO, &silent);
	ask(other, ID, &healthy);
	assert_int_equal(healthy.outcome, BID_OUTCOME_FOUND);
	await_done(&silent);
	assert_int_equal(silent.outcome, BID_OUTCOME_UNREACHABLE);
	assert_true(healthy.done_at < silent.done_at);
	other->ops->free(other);
	tear_down(&setting);
}

static void test_cancel_in_body(void **state)
{
	struct bid_fetch_config config = quick;
	struct capture capture;
	struct setting setting;
	uint64_t number;
	double began;

	config.stall_ms = PATIENCE_S * 1000;
	config.first_byte_ms = PATIENCE_S * 1000;
	set_up(&setting, &config);
	behave("stall:5000");
	capture_init(&capture);
	number = start(setting.source, ID, BID_KIND_DEBUGINFO, &capture);
	await(&capture, &capture.heads, 1);
	began = now();
	setting.source->ops->cancel(setting.source, number);
	/* once more, and what never was */
	setting.source->ops->cancel(setting.source, number);
	setting.source->ops->cancel(setting.source, number + 1000);
	setting.source->ops->cancel(setting.source, 0);
	await_done(&capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_CANCELLED);
	assert_true(capture.done_at - began < 2);
	tear_down(&setting);
	assert_int_equal(capture.dones, 1);
}

/* Those that wait for their turn and those that rest between two tries can be cancelled as well; the others go on. */
static void test_cancel_in_line(void **state)
{
	enum { N = 5 };
	static struct capture captures[N];
	struct bid_fetch_config config = quick;
	struct setting setting;
	uint64_t numbers[N];

	config.parallel = 1;
	config.retries = 1;
	set_up(&setting, &config);
	behave("error:503:9*1");
	for (size_t i = 0; i < N; i++) {
		capture_init(&captures[i]);
		numbers[i] = start(setting.source, ID, BID_KIND_DEBUGINFO, &captures[i]);
	}
	await_requests(1);
	setting.source->ops->cancel(setting.source, numbers[3]);
	await_done(&captures[3]);
	assert_int_equal(captures[3].outcome, BID_OUTCOME_CANCELLED);
	assert_int_equal(captures[3].heads, 0);
	setting.source->ops->cancel(setting.source, numbers[0]);
	for (size_t i = 0; i < N; i++) {
		await_done(&captures[i]);
		assert_int_equal(captures[i].outcome, i == 0 || i == 3 ? BID_OUTCOME_CANCELLED : BID_OUTCOME_FOUND);
	}
	assert_int_equal(requests(), N - 1);
	tear_down(&setting);
}

/* free() ends what is under way and what waits, and each done() has returned when it returns. */
static void test_free_in_flight(void **state)
{
	enum { N = 6 };
	static struct capture captures[N];
	struct bid_fetch_config config = quick;
	struct setting setting;
	double began;

	config.stall_ms = PATIENCE_S * 1000;
	config.first_byte_ms = PATIENCE_S * 1000;
	set_up(&setting, &config);
	behave("stall:5000");
	for (size_t i = 0; i < N; i++) {
		capture_init(&captures[i]);
		start(setting.source, ID, BID_KIND_DEBUGINFO, &captures[i]);
	}
	await(&captures[0], &captures[0].heads, 1);
	began = now();
	setting.source->ops->free(setting.source);
	assert_true(now() - began < 2);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(captures[i].dones, 1);
		assert_int_equal(captures[i].outcome, BID_OUTCOME_CANCELLED);
	}
	bid_fetch_free(setting.fetch);
}

static void test_free_at_once(void **state)
{
	static struct capture capture;

	behave("ok");
	for (int i = 0; i < 50; i++) {
		struct setting setting;

		set_up(&setting, &quick);
		capture_init(&capture);
		start(setting.source, ID, BID_KIND_DEBUGINFO, &capture);
		tear_down(&setting);
		assert_int_equal(capture.dones, 1);
	}
	bid_fetch_free(NULL);
}

static void test_receiver_fails(void **state)
{
	static const struct {
		int head_result, body_result;
		enum bid_outcome outcome;
		const char *text;
	} cases[] = {
		{ -ENOSPC, 0, BID_OUTCOME_FAILED, "could not keep it: No space left on device" },
		{ 0, -ENOSPC, BID_OUTCOME_FAILED, "could not keep it: No space left on device" },
		{ -EBADMSG, 0, BID_OUTCOME_REJECTED, "not what was asked for" },
		{ 0, -EBADMSG, BID_OUTCOME_REJECTED, "not what was asked for" },
	};
	struct bid_fetch_config config = quick;
	struct setting setting;

	config.retries = 2;
	set_up(&setting, &config);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture capture;

		behave("ok");
		capture_init(&capture);
		capture.head_result = cases[i].head_result;
		capture.body_result = cases[i].body_result;
		start(setting.source, ID, BID_KIND_DEBUGINFO, &capture);
		await_done(&capture);
		assert_int_equal(capture.outcome, cases[i].outcome);
		assert_string_equal(capture.text, cases[i].text);
		assert_true(capture.received < BODY_SIZE);
		assert_int_equal(requests(), 1);
	}
	tear_down(&setting);
}

static void start_next(struct capture *capture)
{
	capture_init(capture->next_capture);
	start(capture->next_source, ID, BID_KIND_DEBUGINFO, capture->next_capture);
}

/* As the broker does it: the next source is asked from inside the done() of the one before. */
static void test_start_from_done(void **state)
{
	static struct capture first, second;
	struct bid_source *other;
	struct setting setting;
	char url[128];

	behave("absent");
	set_up(&setting, &quick);
	snprintf(url, sizeof(url), "%s/plain", world.url);
	assert_int_equal(bid_fetch_server_new(setting.fetch, url, &other), 0);
	capture_init(&first);
	first.on_done = start_next;
	first.next_source = other;
	first.next_capture = &second;
	start(setting.source, ID, BID_KIND_DEBUGINFO, &first);
	await_done(&first);
	assert_int_equal(first.outcome, BID_OUTCOME_ABSENT);
	await_done(&second);
	assert_int_equal(second.outcome, BID_OUTCOME_FOUND);
	assert_body(&second);
	/* at once, and not when the thread wakes up for something else */
	assert_true(second.done_at - first.done_at < 2);
	other->ops->free(other);
	tear_down(&setting);
}

static void test_max_size(void **state)
{
	static const struct {
		const char *behaviour;
		unsigned heads;
		const char *text;
	} cases[] = {
		{ "ok", 0, "HTTP 406: File too large, max size=99999" },
		{ "lower-case", 0, "100000 bytes, the limit is 99999" },
		{ "no-length", 0, "100000 bytes, the limit is 99999" },
		{ "big-length", 0, "1099511627776 bytes, the limit is 99999" },
		{ "endless", 1, "more than the limit of 99999 bytes" },
	};
	struct bid_fetch_config config = quick;
	struct capture capture;
	struct setting setting;

	config.max_size = BODY_SIZE - 1;
	set_up(&setting, &config);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		behave(cases[i].behaviour);
		ask(setting.source, ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_TOO_LARGE);
		assert_string_equal(capture.text, cases[i].text);
		assert_int_equal(capture.heads, cases[i].heads);
		assert_true(capture.received <= config.max_size);
		assert_int_equal(requests(), 1);
	}
	tear_down(&setting);

	config.max_size = BODY_SIZE;
	set_up(&setting, &config);
	behave("lower-case");
	ask(setting.source, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	tear_down(&setting);
}

static void test_credentials(void **state)
{
	struct bid_fetch *fetch;
	struct bid_source *source;
	struct capture capture;
	char url[128];

	behave("error:403");
	assert_int_equal(bid_fetch_new(&quick, &fetch), 0);
	snprintf(url, sizeof(url), "http://user:secret@127.0.0.1:%u/", world.port);
	assert_int_equal(bid_fetch_server_new(fetch, url, &source), 0);
	assert_string_equal(source->name, world.url);
	ask(source, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_REFUSED);
	assert_null(strstr(capture.url, "secret"));
	assert_null(strstr(capture.text, "secret"));
	/* "user:secret" in base64 */
	assert_non_null(strstr(control("GET", "/headers?path=/buildid/" ID "/debuginfo"), "Basic dXNlcjpzZWNyZXQ="));
	source->ops->free(source);
	bid_fetch_free(fetch);
}

static void test_bad_servers(void **state)
{
	struct bid_source *source = NULL;
	struct bid_fetch *fetch;

	assert_int_equal(bid_fetch_new(&quick, &fetch), 0);
	assert_int_equal(bid_fetch_server_new(fetch, "file:///srv/debug", &source), -EPROTONOSUPPORT);
	assert_int_equal(bid_fetch_server_new(fetch, "nonsense", &source), -EINVAL);
	assert_null(source);
	bid_fetch_free(fetch);
}

static int listen_on(int backlog, uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static void ask_port(const struct bid_fetch_config *config, uint16_t port, struct capture *capture)
{
	struct bid_fetch *fetch;
	struct bid_source *source;
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
	assert_int_equal(bid_fetch_new(config, &fetch), 0);
	assert_int_equal(bid_fetch_server_new(fetch, url, &source), 0);
	ask(source, ID, capture);
	source->ops->free(source);
	bid_fetch_free(fetch);
}

static void test_nobody_listens(void **state)
{
	struct capture capture;
	uint16_t port;
	bid_auto_fd int fd = listen_on(-1, &port);

	ask_port(&quick, port, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_UNREACHABLE);
	assert_string_equal(capture.text, "could not connect: Connection refused");
}

/* A listener whose backlog is full drops what else comes, as a firewall does. It costs the time to connect, and that once. */
static void test_black_hole(void **state)
{
	struct bid_fetch_config config = quick;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct capture capture;
	uint16_t port;
	bid_auto_fd int fd = listen_on(0, &port);
	int fillers[4];
	double began;

	address.sin_port = htons(port);
	for (size_t i = 0; i < sizeof(fillers) / sizeof(fillers[0]); i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(fillers[i] >= 0);
		if (connect(fillers[i], (struct sockaddr *)&address, sizeof(address)) < 0)
			assert_int_equal(errno, EINPROGRESS);
	}
	config.connect_ms = 500;
	config.retries = 2;
	began = now();
	ask_port(&config, port, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_UNREACHABLE);
	assert_int_equal(strncmp(capture.text, "could not connect", 17), 0);
	assert_true(capture.done_at - began >= 0.4);
	assert_true(capture.done_at - began < 2);
	for (size_t i = 0; i < sizeof(fillers) / sizeof(fillers[0]); i++)
		close(fillers[i]);
}

/* No socket may leak into the programs that a daemon starts. */
static void test_close_on_exec(void **state)
{
	struct capture capture;
	struct setting setting;
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	unsigned sockets = 0;

	set_up(&setting, &quick);
	behave("ok");
	ask(setting.source, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	dir = opendir("/proc/self/fd");
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		struct sockaddr_in peer = { 0 };
		socklen_t len = sizeof(peer);

		if (entry->d_name[0] == '.' || getpeername(fd, (struct sockaddr *)&peer, &len) < 0)
			continue;
		if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != world.port)
			continue;
		sockets++;
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	assert_int_equal(sockets, 1);
	tear_down(&setting);
}

static void write_artifact(const char *id, const char *kind)
{
	char path[PATH_MAX];
	bid_auto_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", world.root, id);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/%s/%s", world.root, id, kind);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(bid_pwrite_full(fd, world.body, BODY_SIZE, 0), 0);
}

static void run_server(const char *port_file)
{
	const char *tree = getenv("BID_SOURCE_ROOT");
	char program[PATH_MAX];

	/* the server ends with the test, however that ends */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(program, sizeof(program), "%s/tests/faults/server.py", tree ? tree : ".");
	execlp("python3", "python3", program, "--root", world.root, "--port-file", port_file, (char *)NULL);
	perror("python3");
	_exit(127);
}

static void read_port(const char *port_file)
{
	double deadline = now() + PATIENCE_S;
	bid_auto_fd int fd = -1;
	char text[16] = "";

	while ((fd = open(port_file, O_RDONLY | O_CLOEXEC)) < 0) {
		assert_int_equal(waitpid(world.server, NULL, WNOHANG), 0);
		assert_true(now() < deadline);
		usleep(10000);
	}
	assert_true(bid_pread_full(fd, text, sizeof(text) - 1, 0) > 0);
	world.port = (uint16_t)strtoul(text, NULL, 10);
	snprintf(world.url, sizeof(world.url), "http://127.0.0.1:%u", world.port);
}

static int begin_world(void **state)
{
	char port_file[PATH_MAX];
	uint32_t random = 1;

	/* the proxy of whoever runs the tests is none of theirs */
	setenv("no_proxy", "127.0.0.1", 1);
	for (size_t i = 0; i < BODY_SIZE; i++) {
		random = random * 1664525 + 1013904223;
		world.body[i] = (unsigned char)(random >> 24);
	}
	snprintf(world.root, sizeof(world.root), "/tmp/bid-test-fetch-XXXXXX");
	assert_non_null(mkdtemp(world.root));
	write_artifact(ID, "debuginfo");
	write_artifact(ID, "executable");
	write_artifact(OTHER_ID, "debuginfo");

	snprintf(port_file, sizeof(port_file), "%s/port", world.root);
	world.server = fork();
	if (world.server == 0)
		run_server(port_file);
	assert_true(world.server > 0);
	read_port(port_file);
	return 0;
}

static int end_world(void **state)
{
	static const char *const files[] = { ID "/debuginfo", ID "/executable", ID, OTHER_ID "/debuginfo", OTHER_ID, "port" };
	char path[PATH_MAX];

	kill(world.server, SIGTERM);
	waitpid(world.server, NULL, 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", world.root, files[i]);
		remove(path);
	}
	return rmdir(world.root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_behaviours),
		cmocka_unit_test(test_healing),
		cmocka_unit_test(test_retry_after),
		cmocka_unit_test(test_forgotten_connection),
		cmocka_unit_test(test_connection_reuse),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_two_servers),
		cmocka_unit_test(test_cancel_in_body),
		cmocka_unit_test(test_cancel_in_line),
		cmocka_unit_test(test_free_in_flight),
		cmocka_unit_test(test_free_at_once),
		cmocka_unit_test(test_receiver_fails),
		cmocka_unit_test(test_start_from_done),
		cmocka_unit_test(test_max_size),
		cmocka_unit_test(test_credentials),
		cmocka_unit_test(test_bad_servers),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_black_hole),
		cmocka_unit_test(test_close_on_exec),
	};

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
