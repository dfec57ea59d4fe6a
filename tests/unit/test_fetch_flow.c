// SPDX-License-Identifier: LGPL-2.1-or-later
/* The source that speaks HTTP: turns, cancelling, connections, and the end of it all. */
#include "fetch_scene.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_black_hole),
		cmocka_unit_test(test_close_on_exec),
	};

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
