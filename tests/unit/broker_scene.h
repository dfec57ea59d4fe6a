/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the tests of the broker share: a store in a temporary directory, ELF files of chosen ids, calls that remember how they were
 * answered. held_source.h has a source that can be held at any point.
 */
#ifndef BID_TEST_BROKER_SCENE_H
#define BID_TEST_BROKER_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "api/broker.h"
#include "source_memory.h"

/* A large ELF file: the early check has done its work long before its end. */
#define LARGE (300 * 1024)

#define PATIENCE_MS 20000		/* a test that waits longer has failed */

struct call;
struct held_source;

struct scene {
	char directory[64];
	struct bid_store *store;
	struct bid_broker *broker;
	struct call *calls;		/* all of them: what is called late, after a test failed, must still be there */
	struct held_source *held;	/* likewise */
};

/* Group fixtures: compile the ELF files of request() 0xa and 0xb, and remove them. */
int scene_compile(void **state);
int scene_clean(void **state);

/* Per test: a fresh store in @state; and the end of it and of the broker, after which every call must have been answered once. */
int scene_begin(void **state);
int scene_end(void **state);

/* End the broker before the test does. */
void scene_end_broker(struct scene *scene);

/* Its callers wait for ever, and it asks one source after the other. */
extern const struct bid_broker_config patient;

/* Make the scene's broker. */
void scene_broker(struct scene *scene, const struct bid_broker_config *config);

/* As if it had been made with this, for what begins from now on: what a test does before may take as long as it does. */
void scene_wait_ms(struct scene *scene, unsigned wait_ms);
void scene_hedge_ms(struct scene *scene, unsigned hedge_ms);

/* Add a source of the library's own kind; the broker owns it. */
struct bid_source *scene_memory(struct scene *scene, const char *name);

/* The id is the byte @byte, repeated 20 times. */
struct bid_request request_of(uint8_t byte, enum bid_kind kind);
struct bid_request elf_of(uint8_t byte);

/* The compiled file that carries the id of elf_of(@byte), 0xa or 0xb. */
const void *elf_bytes(uint8_t byte, size_t *ret_len);

/* Let @source of scene_memory() deliver for elf_of(@asked) the file that carries @carried. */
void put_elf(struct bid_source *source, uint8_t asked, uint8_t carried);

int64_t now_ms(void);
void sleep_ms(unsigned ms);

/* pthread_cond_wait(), but not for ever. */
void wait_changed(pthread_cond_t *condition, pthread_mutex_t *lock);

/* One ticket, and how it was answered. */
struct call {
	pthread_mutex_t lock;
	pthread_cond_t called;
	struct call *next;		/* in the scene */
	uint64_t ticket;
	unsigned times;
	int error;
	int fd;				/* taken out of the result */
	int64_t size;
	int64_t answered_ms;
	size_t n_reports;
	enum bid_outcome outcomes[8];
	char sources[8][32];
	char texts[8][256];
	uint64_t bytes[8];
};

/* Take a ticket. The scene owns the call. */
struct call *call_begin(struct scene *scene);

/* Has it been answered by now? */
bool call_over(struct call *call);

/* Wait until it is, and return the error. Fails the test after a generous while. */
int call_wait(struct call *call);

/* Take a ticket and fetch @request with it. */
struct call *call_for(struct scene *scene, const struct bid_request *request);

/* fetch @request and wait: the error, and in @ret_call, if not NULL, all of it. */
int fetch(struct scene *scene, const struct bid_request *request, struct call **ret_call);

/* What is there, without asking a source. */
int find(struct scene *scene, const struct bid_request *request, unsigned *ret_ttl);

/* Is the file open at @fd the one that carries @byte? */
void assert_content(int fd, uint8_t byte);

struct bid_broker_stats stats_of(struct scene *scene);

/* A caller in a thread of its own, which wants elf_of() some byte. */
struct caller {
	struct scene *scene;
	struct bid_request request;
	struct call *call;
	pthread_t thread;
};

void caller_start(struct caller *caller, struct scene *scene, uint8_t byte);

/* Wait until no download is left. */
void wait_for_no_downloads(struct scene *scene);

/* Wait until @count of the broker's waiters are there. */
void wait_for_waiters(struct scene *scene, uint64_t count);

#define scene_test(function) cmocka_unit_test_setup_teardown(function, scene_begin, scene_end)

#endif
