// SPDX-License-Identifier: LGPL-2.1-or-later
/* The HTTP server: the connections that it makes, keeps and closes. */
#include "fetch_fixture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

/* A probe opens a new connection. */
static void test_probe_opens_a_new_connection(void **state)
{
	struct capture capture;
	struct setting setting;
	unsigned before;

	set_up(&setting, &calm);
	open_breaker(setting.server);
	before = statistic("connections");
	await_end_of_pause(setting.server);
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(statistic("connections"), before + 2);
	tear_down(&setting);
}

/* Misses are what a debugger asks for most; none may cost a connection. */
static void test_misses_reuse_connections(void **state)
{
	static const char *const ids[] = { ABSENT_ID, ID, ABSENT_ID, OTHER_ID, ABSENT_ID, ABSENT_ID };
	struct setting setting;
	unsigned before, controls = 1;

	set_up(&setting, &calm);
	behave("ok");
	before = statistic("connections");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct capture capture;

		ask(setting.server, ids[i], &capture);
		assert_int_equal(capture.outcome, strcmp(ids[i], ABSENT_ID) == 0 ? BID_OUTCOME_ABSENT : BID_OUTCOME_FOUND);
	}
	assert_int_equal(statistic("connections"), before + controls + 1);
	tear_down(&setting);
}

static void test_retry_opens_a_new_connection(void **state)
{
	struct bid_fetch_config config = calm;
	struct capture first, second;
	struct setting setting;
	unsigned before;

	config.stall_ms = 1000;
	config.retries = 1;
	set_up(&setting, &config);
	behave("hold*2");
	capture_init(&first);
	capture_init(&second);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &first);
	start(setting.server, OTHER_ID, BID_KIND_DEBUGINFO, &second);
	await_requests(2);
	control("POST", "/release");
	await_done(&first);
	await_done(&second);

	control("POST", "?behaviour=stall:5000*1");
	before = statistic("connections");
	ask(setting.server, ID, &first);
	assert_int_equal(first.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(statistic("connections"), before + 2);
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
	struct bid_server *server;
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
	assert_int_equal(bid_fetch_new(config, &fetch), 0);
	assert_int_equal(bid_fetch_server_new(fetch, url, &server), 0);
	ask(server, ID, capture);
	server->ops->free(server);
	bid_fetch_free(fetch);
}

static void test_refused_connection_is_unavailable(void **state)
{
	struct capture capture;
	uint16_t port;
	bid_auto_fd int fd = listen_on(-1, &port);
	char text[64];

	ask_port(&calm, port, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_UNAVAILABLE);
	snprintf(text, sizeof(text), "could not connect to 127.0.0.1:%u: Connection refused", port);
	assert_string_equal(capture.text, text);
}

enum { FILLERS = 4 };

/* A listener with a full backlog drops further connections, as a firewall does. */
static void make_black_hole(int fds[static FILLERS + 1], uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	fds[FILLERS] = listen_on(0, ret_port);
	address.sin_port = htons(*ret_port);
	for (size_t i = 0; i < FILLERS; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(fds[i] >= 0);
		if (connect(fds[i], (struct sockaddr *)&address, sizeof(address)) < 0)
			assert_int_equal(errno, EINPROGRESS);
	}
}

static void close_black_hole(int fds[static FILLERS + 1])
{
	for (size_t i = 0; i <= FILLERS; i++)
		close(fds[i]);
}

/* The cost is one connection time-out. */
static void test_unanswered_connect_costs_one_limit(void **state)
{
	struct bid_fetch_config config = calm;
	struct capture capture;
	int fds[FILLERS + 1];
	uint16_t port;
	double began;

	make_black_hole(fds, &port);
	config.connect_ms = 500;
	config.retries = 2;
	began = now();
	ask_port(&config, port, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(strncmp(capture.text, "could not connect", 17), 0);
	assert_true(capture.done_at - began >= 0.4);
	assert_int_equal(capture.requests, 1);
	close_black_hole(fds);
}

/* No socket may leak into the programs that a daemon starts. */
static void test_sockets_are_closed_on_exec(void **state)
{
	struct capture capture;
	struct setting setting;
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	unsigned sockets = 0;

	set_up(&setting, &calm);
	behave("ok");
	ask(setting.server, ID, &capture);
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

/* An untrusted certificate and its key. False if there is no openssl(1) to make them. */
static bool make_certificate(const char *path)
{
	pid_t openssl = fork();
	int status;

	assert_true(openssl >= 0);
	if (openssl == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDERR_FILENO);
		execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
		       "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-keyout", path, "-out",
		       path, "-batch", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(openssl, &status, 0), openssl);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 127)
		return false;
	assert_int_equal(WEXITSTATUS(status), 0);
	return true;
}

/* A server with an untrusted certificate gets no request, and no retry. */
static void test_untrusted_certificate_is_refused(void **state)
{
	struct bid_fetch_config config = calm;
	struct capture capture;
	char pem[PATH_MAX], url[64];
	struct bid_server *server;
	struct bid_fetch *fetch;
	uint16_t port;
	pid_t pid;

	snprintf(pem, sizeof(pem), "%s/pem", world.root);
	if (!make_certificate(pem)) {
		print_message("no openssl(1) to make a certificate with\n");
		skip();
	}
	pid = start_server(pem, &port);
	config.retries = 2;
	snprintf(url, sizeof(url), "https://127.0.0.1:%u", port);
	assert_int_equal(bid_fetch_new(&config, &fetch), 0);
	assert_int_equal(bid_fetch_server_new(fetch, url, &server), 0);
	ask(server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_UNAVAILABLE);
	if (strncmp(capture.text, "no secure connection: ", 22) != 0 || capture.requests != 1)
		fail_msg("%u requests: %s", capture.requests, capture.text);
	server->ops->free(server);
	bid_fetch_free(fetch);
	stop_server(pid);
	unlink(pem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe_opens_a_new_connection),	   cmocka_unit_test(test_misses_reuse_connections),
		cmocka_unit_test(test_retry_opens_a_new_connection),	   cmocka_unit_test(test_refused_connection_is_unavailable),
		cmocka_unit_test(test_unanswered_connect_costs_one_limit), cmocka_unit_test(test_sockets_are_closed_on_exec),
		cmocka_unit_test(test_untrusted_certificate_is_refused),
	};

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
