/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fixture of the HTTP server's tests: tests/faults/server.py in its own process, and recording receivers. */
#ifndef BID_TEST_FETCH_SCENE_H
#define BID_TEST_FETCH_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/types.h>

#include "api/fetch.h"

#define BODY_SIZE  100000
#define ID	   "00112233445566778899aabbccddeeff00112233"
#define OTHER_ID   "ffeeddccbbaa99887766554433221100ffeeddcc"
#define ABSENT_ID  "0123456789abcdef0123456789abcdef01234567"
#define PATIENCE_S 30 /* limit of each wait, after which the test fails */
#define CALM_MS	   20000 /* a limit that no test reaches; waits that depend on it end before PATIENCE_S */

/* Shared by all tests of a program: a directory with two ids, and its server. */
struct fetch_world {
	char root[64];
	pid_t server;
	uint16_t port;
	char url[64];
	unsigned char body[BODY_SIZE]; /* content of every artifact */
};

extern struct fetch_world world;

/* Group fixtures. */
int begin_world(void **state);
int end_world(void **state);

/* Start another server of the same directory; over TLS with @pem, a file with certificate and key. */
pid_t start_server(const char *pem, uint16_t *ret_port);
void stop_server(pid_t server);

/* Return the seconds of the monotonic clock. */
double now(void);

/* Send a request to the server's /control. Returns the body of the response, valid until the next call. */
const char *control(const char *method, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reset all counts, and set the server's behaviour from now on. */
void behave(const char *behaviour);

/* Return the number of requests for artifacts since behave(). */
unsigned requests(void);
void await_requests(unsigned count);

/* Return a number of /control/stats. */
unsigned statistic(const char *name);

#define CAPTURE_MAX (5 * BODY_SIZE) /* bytes that a receiver takes */

/* Record of a receiver's calls. */
struct capture {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned heads, dones, broken;
	uint64_t size; /* announced with the last head */
	unsigned char body[BODY_SIZE]; /* since the last head */
	uint64_t received;
	int head_result, body_result;
	unsigned pauses, paused; /* pieces of a body to pause, and paused ones */
	useconds_t body_pause; /* time that the receiver needs for the first piece of a body */
	enum bid_outcome outcome;
	char text[256], url[256], file[256];
	double sent_at, head_at, done_at;
	unsigned requests;
	void (*on_done)(struct capture *capture);
	struct bid_server *server; /* server of the transfer */
	struct bid_server *next_server; /* for on_done */
	struct capture *next_capture;
};

void capture_init(struct capture *capture);

/* Receiver that records into a struct capture. */
extern const struct bid_receiver receiver;

/* Wait until @counter, a field of @capture, is at least @count; wait for done(). */
void await(struct capture *capture, const unsigned *counter, unsigned count);
void await_done(struct capture *capture);

/* Check that the whole body arrived unchanged. */
void assert_body(const struct capture *capture);

/* A fetcher with one server. */
struct setting {
	struct bid_fetch *fetch;
	struct bid_server *server;
};

/* Configuration with CALM_MS as every limit, no retry and two parallel requests. A test sets the one limit that it reaches. */
extern const struct bid_fetch_config calm;

void set_up(struct setting *setting, const struct bid_fetch_config *config);
void tear_down(struct setting *setting);

/* Start a transfer into @capture; or start one and wait for its end. */
void start(struct bid_server *server, const char *id, enum bid_kind kind, struct capture *capture);
void ask(struct bid_server *server, const char *id, struct capture *capture);

/* Is done() of @capture over? */
bool is_done(struct capture *capture);

struct bid_server_health health_of(struct bid_server *server);

void await_breaker(struct bid_server *server, enum bid_breaker_state wanted);

/* Make the server of @server fail until the breaker opens; wait until the breaker admits a trial. */
void open_breaker(struct bid_server *server);
void await_end_of_pause(struct bid_server *server);

/* Check that the breaker of @server opened after @began, for at least @min and at most @max seconds. */
void assert_pause(struct bid_server *server, double began, unsigned min, unsigned max);

/* Check that the breaker of @server is open and refuses a request. */
void assert_refused(struct bid_server *server);

#endif
