// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../clock/test_clock.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "scratch.h"

struct fetch_world world;

double now(void)
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
const char *control(const char *method, const char *format, ...)
{
	static char answer[8192];
	char path[512], artifact[1024];
	size_t len = 0;
	va_list arguments;
	bid_auto_fd int fd = connect_to(world.port);
	char *body;

	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	assert_true(fd >= 0);
	snprintf(artifact, sizeof(artifact), "%s /control%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", method, path);
	assert_int_equal(write(fd, artifact, strlen(artifact)), strlen(artifact));
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

void behave(const char *behaviour)
{
	control("POST", "/reset");
	control("POST", "?behaviour=%s", behaviour);
}

unsigned requests(void)
{
	return (unsigned)strtoul(control("GET", "/count"), NULL, 10);
}

unsigned statistic(const char *name)
{
	char key[32];
	const char *found;

	snprintf(key, sizeof(key), "\"%s\": ", name);
	found = strstr(control("GET", "/stats"), key);
	assert_non_null(found);
	return (unsigned)strtoul(found + strlen(key), NULL, 10);
}

static void capture_sent(void *user)
{
	struct capture *capture = user;

	pthread_mutex_lock(&capture->lock);
	capture->sent_at = now();
	pthread_mutex_unlock(&capture->lock);
}

static int capture_header(void *user, uint64_t size)
{
	struct capture *capture = user;
	int r;

	pthread_mutex_lock(&capture->lock);
	capture->heads++;
	capture->head_at = now();
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

	if (capture->received == 0 && capture->body_pause)
		usleep(capture->body_pause);
	pthread_mutex_lock(&capture->lock);
	if (capture->paused < capture->pauses) {
		capture->paused++;
		pthread_cond_broadcast(&capture->changed);
		pthread_mutex_unlock(&capture->lock);
		return -EAGAIN;
	}
	r = capture->received + len > CAPTURE_MAX ? -EFBIG : capture->body_result;
	if (capture->received + len <= BODY_SIZE)
		memcpy(capture->body + capture->received, data, len);
	if (r != -EFBIG)
		capture->received += len;
	pthread_cond_broadcast(&capture->changed);
	pthread_mutex_unlock(&capture->lock);
	return r;
}

static void capture_broke_off(void *user)
{
	struct capture *capture = user;

	pthread_mutex_lock(&capture->lock);
	capture->broken++;
	pthread_mutex_unlock(&capture->lock);
}

static void capture_done(void *user, const struct bid_server_report *report)
{
	struct capture *capture = user;

	if (capture->on_done)
		capture->on_done(capture);
	/* there is no broker to check it */
	if (report->outcome == BID_OUTCOME_FOUND && capture->server)
		capture->server->ops->note_check(capture->server, true, "");
	pthread_mutex_lock(&capture->lock);
	capture->dones++;
	capture->outcome = report->outcome;
	snprintf(capture->text, sizeof(capture->text), "%s", report->text);
	snprintf(capture->url, sizeof(capture->url), "%s", report->url);
	snprintf(capture->file, sizeof(capture->file), "%s", report->file ? report->file : "");
	capture->requests = report->requests;
	capture->done_at = now();
	pthread_cond_broadcast(&capture->changed);
	pthread_mutex_unlock(&capture->lock);
}

const struct bid_receiver receiver = {
	.sent = capture_sent,
	.header = capture_header,
	.body = capture_body,
	.broke_off = capture_broke_off,
	.done = capture_done,
};

void capture_init(struct capture *capture)
{
	*capture = (struct capture){ .dones = 0 };
	pthread_mutex_init(&capture->lock, NULL);
	pthread_cond_init(&capture->changed, NULL);
}

/* Wait until @counter, a field of @capture, is at least @count. */
void await(struct capture *capture, const unsigned *counter, unsigned count)
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

void await_done(struct capture *capture)
{
	await(capture, &capture->dones, 1);
}

/* Wait until so many requests have reached the server. */
void await_requests(unsigned count)
{
	double deadline = now() + PATIENCE_S;

	while (requests() < count) {
		assert_true(now() < deadline);
		usleep(5000);
	}
}

void start(struct bid_server *server, const char *id, enum bid_kind kind, struct capture *capture)
{
	struct bid_artifact artifact = { .kind = kind };

	assert_int_equal(bid_id_parse_str(id, &artifact.id), 0);
	capture->server = server;
	assert_int_equal(server->ops->request(server, &artifact, &receiver, capture), 0);
}

void ask(struct bid_server *server, const char *id, struct capture *capture)
{
	capture_init(capture);
	start(server, id, BID_KIND_DEBUGINFO, capture);
	await_done(capture);
}

void assert_body(const struct capture *capture)
{
	assert_int_equal(capture->received, BODY_SIZE);
	assert_memory_equal(capture->body, world.body, BODY_SIZE);
}

const struct bid_fetch_config calm = {
	.connect_ms = CALM_MS,
	.first_byte_ms = CALM_MS,
	.first_contact_ms = CALM_MS,
	.stall_ms = CALM_MS,
	.retries = 0,
	.parallel = 2,
};

void set_up(struct setting *setting, const struct bid_fetch_config *config)
{
	assert_int_equal(bid_fetch_new(config, &setting->fetch), 0);
	assert_int_equal(bid_fetch_server_new(setting->fetch, world.url, &setting->server), 0);
}

void tear_down(struct setting *setting)
{
	setting->server->ops->free(setting->server);
	bid_fetch_free(setting->fetch);
}

static void write_artifact(const char *id, const char *kind)
{
	char path[PATH_MAX];
	bid_auto_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/%s/%s", world.root, id, kind);
	*strrchr(path, '/') = '\0';
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	path[strlen(path)] = '/';
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(bid_pwrite_full(fd, world.body, BODY_SIZE, 0), 0);
}

static void run_server(const char *port_file, const char *pem)
{
	const char *tree = getenv("BID_SOURCE_ROOT");
	char program[PATH_MAX];

	/* the server ends with the test */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(program, sizeof(program), "%s/tests/faults/server.py", tree ? tree : ".");
	execlp("python3", "python3", program, "--root", world.root, "--port-file", port_file, pem ? "--tls" : (char *)NULL, pem,
	       (char *)NULL);
	perror("python3");
	_exit(127);
}

static uint16_t read_port(const char *port_file, pid_t server)
{
	double deadline = now() + PATIENCE_S;
	bid_auto_fd int fd = -1;
	char text[16] = "";

	while ((fd = open(port_file, O_RDONLY | O_CLOEXEC)) < 0) {
		assert_int_equal(waitpid(server, NULL, WNOHANG), 0);
		assert_true(now() < deadline);
		usleep(10000);
	}
	assert_true(bid_pread_full(fd, text, sizeof(text) - 1, 0) > 0);
	unlink(port_file);
	return (uint16_t)strtoul(text, NULL, 10);
}

pid_t start_server(const char *pem, uint16_t *ret_port)
{
	char port_file[PATH_MAX];
	pid_t server;

	snprintf(port_file, sizeof(port_file), "%s/port", world.root);
	server = fork();
	if (server == 0)
		run_server(port_file, pem);
	assert_true(server > 0);
	*ret_port = read_port(port_file, server);
	return server;
}

void stop_server(pid_t server)
{
	/* none, if the set-up failed; and zero would mean the whole process group */
	if (server <= 0)
		return;
	kill(server, SIGTERM);
	waitpid(server, NULL, 0);
}

bool is_done(struct capture *capture)
{
	bool done;

	pthread_mutex_lock(&capture->lock);
	done = capture->dones > 0;
	pthread_mutex_unlock(&capture->lock);
	return done;
}

struct bid_server_health health_of(struct bid_server *server)
{
	struct bid_server_health health;

	server->ops->health(server, &health);
	return health;
}

void assert_refused(struct bid_server *server)
{
	struct capture capture;

	ask(server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(strncmp(capture.text, "breaker open until ", 19), 0);
}

void await_breaker(struct bid_server *server, enum bid_breaker_state wanted)
{
	double deadline = now() + PATIENCE_S;

	while (health_of(server).breaker != wanted) {
		assert_true(now() < deadline);
		usleep(5000);
	}
}

void open_breaker(struct bid_server *server)
{
	struct capture capture;

	behave("error:503*5");
	for (int i = 0; i < 5; i++)
		ask(server, ID, &capture);
	assert_int_equal(health_of(server).breaker, BID_BREAKER_OPEN);
}

void await_end_of_pause(struct bid_server *server)
{
	test_clock_advance_ms(health_of(server).next_trial_s * INT64_C(1000));
	assert_int_equal(health_of(server).next_trial_s, 0);
}

void assert_pause(struct bid_server *server, double began, unsigned min, unsigned max)
{
	unsigned left = health_of(server).next_trial_s;

	assert_true(left <= max && left + (now() - began) >= min);
}

int begin_world(void **state)
{
	uint32_t random = 1;

	/* ignore the proxy of the user who runs the tests */
	setenv("no_proxy", "127.0.0.1", 1);
	for (size_t i = 0; i < BODY_SIZE; i++) {
		random = random * 1664525 + 1013904223;
		world.body[i] = (unsigned char)(random >> 24);
	}
	snprintf(world.root, sizeof(world.root), "/tmp/bid-test-fetch-XXXXXX");
	assert_non_null(mkdtemp(world.root));
	write_artifact(ID, "debuginfo");
	write_artifact(ID, "executable");
	write_artifact(ID, "section/.text");
	write_artifact(ID, "source/a.c");
	write_artifact(OTHER_ID, "debuginfo");

	world.server = start_server(NULL, &world.port);
	snprintf(world.url, sizeof(world.url), "http://127.0.0.1:%u", world.port);
	return 0;
}

int end_world(void **state)
{
	stop_server(world.server);
	return scratch_remove(world.root);
}
