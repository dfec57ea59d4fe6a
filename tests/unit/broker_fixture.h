/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fixture of the broker's tests: a store in a temporary directory, ELF files of chosen ids, and calls with a record of their
 * answers. held_server.h has a server that a test can hold at any point.
 */
#ifndef BID_TEST_BROKER_FIXTURE_H
#define BID_TEST_BROKER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "api/broker.h"
#include "memory_server.h"

/* Size of a large ELF file, whose early check ends long before its last byte. */
#define LARGE (300 * 1024)

#define PATIENCE_MS 20000 /* limit of each wait, after which the test fails */
#define HEDGE_NEVER UINT32_MAX /* as hedge_ms: 49 days */

struct call;
struct held_server;

struct fixture {
	char directory[64];
	struct bid_store *store;
	struct bid_broker *broker;
	struct call *calls; /* all calls up to the end of the fixture, for late answers after a failed test */
	struct held_server *held; /* all held servers, kept likewise */
};

/* Group fixtures: compile the ELF files of elf_of() 0xa and 0xb, and remove them. */
int fixture_compile(void **state);
int fixture_clean(void **state);

/* Fixtures of each test: create @state with a new store; end the store and the broker, and check that every call got one answer. */
int fixture_begin(void **state);
int fixture_end(void **state);

/* End the broker before the end of the test. */
void fixture_end_broker(struct fixture *fixture);

/* Configuration without a limit of the wait, and with one server at a time. */
extern const struct bid_broker_config unhedged;

/* Make the fixture's broker. */
void fixture_broker(struct fixture *fixture, const struct bid_broker_config *config);

/*
 * Set the option for everything that begins from now on, as if the broker had it from its start. Earlier steps of the test may take
 * any time.
 */
void fixture_wait_ms(struct fixture *fixture, unsigned wait_ms);
void fixture_hedge_ms(struct fixture *fixture, unsigned hedge_ms);

/* Add an in-memory server (memory_server.h), which the broker owns. */
struct bid_server *fixture_memory(struct fixture *fixture, const char *name);

/* Make a request with the id of 20 bytes @byte. */
struct bid_artifact request_of(uint8_t byte, enum bid_kind kind);
struct bid_artifact elf_of(uint8_t byte);

/* Return the compiled file with the id of elf_of(@byte), 0xa or 0xb. */
const void *elf_bytes(uint8_t byte, size_t *ret_len);

/* Let @server of fixture_memory() deliver, for elf_of(@requested), the file with the id of elf_of(@carried). */
void put_elf(struct bid_server *server, uint8_t requested, uint8_t carried);

int64_t now_ms(void);
void sleep_ms(unsigned ms);

/* pthread_cond_wait() with a limit. */
void wait_changed(pthread_cond_t *condition, pthread_mutex_t *lock);

/* One waiter, and its answer. */
struct call {
	pthread_mutex_t lock;
	pthread_cond_t called;
	struct call *next; /* in the fixture */
	uint64_t waiter_id;
	unsigned times;
	int error;
	int fd; /* taken from the result */
	int64_t size;
	int64_t answered_ms;
	size_t n_reports;
	enum bid_outcome outcomes[8];
	char servers[8][32];
	char texts[8][256];
	uint64_t bytes[8];
};

/* Make a waiter. The fixture owns the call. */
struct call *call_begin(struct fixture *fixture);

/* Has the call its answer? */
bool call_over(struct call *call);

/* Wait for the answer, and return its error. Fails the test after PATIENCE_MS. */
int call_wait(struct call *call);

/* Make a waiter, and submit @artifact with it. */
struct call *call_for(struct fixture *fixture, const struct bid_artifact *artifact);

/* Submit @artifact, and wait. Returns the error; @ret_call (may be NULL) receives the call. */
int fetch(struct fixture *fixture, const struct bid_artifact *artifact, struct call **ret_call);

/* Look up @artifact in the store and the negative cache, without a request to a server. */
int find(struct fixture *fixture, const struct bid_artifact *artifact, unsigned *ret_ttl);

/* Is the file open at @fd the one with the id of elf_of(@byte)? */
void assert_content(int fd, uint8_t byte);

struct bid_broker_stats stats_of(struct fixture *fixture);

/* A caller in its own thread, which requests elf_of() of a byte. */
struct caller {
	struct fixture *fixture;
	struct bid_artifact artifact;
	struct call *call;
	pthread_t thread;
};

void caller_start(struct caller *caller, struct fixture *fixture, uint8_t byte);

/* Wait for the end of all downloads. */
void wait_for_no_downloads(struct fixture *fixture);

/* Wait until the broker has @count waiters. */
void wait_for_waiters(struct fixture *fixture, uint64_t count);

#define fixture_test(function) cmocka_unit_test_setup_teardown(function, fixture_begin, fixture_end)

#endif
