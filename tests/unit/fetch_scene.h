/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of the HTTP source share: tests/faults/server.py in a process of its own, and receivers that remember. */
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

#define BODY_SIZE	100000
#define ID		"00112233445566778899aabbccddeeff00112233"
#define OTHER_ID	"ffeeddccbbaa99887766554433221100ffeeddcc"
#define ABSENT_ID	"0123456789abcdef0123456789abcdef01234567"
#define PATIENCE_S	30	/* a test that waits longer has failed */
#define CALM_MS		20000	/* of a limit that is not to be met; and what waits for it is over before PATIENCE_S */

/* Of all tests of a program: a directory with two ids, and the server that serves it. */
struct fetch_world {
	char root[64];
	pid_t server;
	uint16_t port;
	char url[64];
	unsigned char body[BODY_SIZE];	/* of every artifact */
};

extern struct fetch_world world;

/* Group fixtures. */
int begin_world(void **state);
int end_world(void **state);

/* Another server of the same directory, over TLS if @pem, a file with certificate and key, is given. */
pid_t start_server(const char *pem, uint16_t *ret_port);
void stop_server(pid_t server);

/* Seconds of the monotonic clock. */
double now(void);

/* Send a request to the server's /control, and return the body of its answer until the next. */
const char *control(const char *method, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Forget all counts and behave so from now on. */
void behave(const char *behaviour);

/* How many artifacts were asked for since behave(). */
unsigned requests(void);
void await_requests(unsigned count);

/* A number of /control/stats. */
unsigned statistic(const char *name);

/* What a receiver was told. */
struct capture {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned heads, dones, broken;
	uint64_t size;			/* of the last head */
	unsigned char body[BODY_SIZE];	/* since the last head */
	uint64_t received;
	int head_result, body_result;
	unsigned pauses, paused;	/* how many pieces of a body are to be paused, and were */
	useconds_t body_pause;		/* what the first piece of a body takes to be kept */
	enum bid_outcome outcome;
	char text[256], url[256], file[256];
	uint64_t answered_size;
	unsigned retry_after_s;
	double sent_at, head_at, done_at;
	unsigned tries;
	void (*on_done)(struct capture *capture);
	struct bid_source *source;	/* that was asked */
	struct bid_source *next_source;	/* for on_done */
	struct capture *next_capture;
};

void capture_init(struct capture *capture);

/* Makes a struct capture remember. */
extern const struct bid_receiver receiver;

/* Wait until @counter, a field of @capture, is at least @count; until its done(). */
void await(struct capture *capture, const unsigned *counter, unsigned count);
void await_done(struct capture *capture);

/* Was the whole body delivered, as it is? */
void assert_body(const struct capture *capture);

/* A fetcher, and one server. */
struct setting {
	struct bid_fetch *fetch;
	struct bid_source *source;
};

/* CALM_MS for everything, no other try, two turns. The time that a test waits for to be over is its own to set. */
extern const struct bid_fetch_config calm;

void set_up(struct setting *setting, const struct bid_fetch_config *config);
void tear_down(struct setting *setting);

/* Start a transfer into @capture, and return its number; or start one and wait for its end. */
uint64_t start(struct bid_source *source, const char *id, enum bid_kind kind, struct capture *capture);
void ask(struct bid_source *source, const char *id, struct capture *capture);

/* Is its done() over? */
bool is_done(struct capture *capture);

struct bid_source_health health_of(struct bid_source *source);

void await_breaker(struct bid_source *source, enum bid_breaker_state wanted);

/* Make the server of @source fail until the breaker opens; wait until it lets a probe through. */
void open_breaker(struct bid_source *source);
void await_end_of_pause(struct bid_source *source);

/* The breaker of @source has opened since @began, for at least @min and at most @max seconds. */
void assert_pause(struct bid_source *source, double began, unsigned min, unsigned max);

/* The breaker of @source is open, and says so. */
void assert_refused(struct bid_source *source);

#endif
