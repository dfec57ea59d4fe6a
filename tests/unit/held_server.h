/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A server with its own thread, which a test can hold at any point. */
#ifndef BID_TEST_HELD_SERVER_H
#define BID_TEST_HELD_SERVER_H

#include "broker_fixture.h"

/* Point at which a held_server stops. */
enum hold_point {
	HOLD_NOWHERE,
	HOLD_HEAD, /* before the body */
	HOLD_MIDDLE, /* after the first half of the body */
	HOLD_END, /* after the whole body, before done() */
};

struct held_transfer;

/* A server with its own thread, which delivers one transfer after the other. */
struct held_server {
	struct bid_server server;
	pthread_t thread;
	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t changed;
	struct held_server *next; /* in the fixture */
	struct held_transfer *transfers;
	bool stop;
	unsigned last;
	unsigned n_cancelled; /* cancelled transfers that have not ended yet */

	/* set by the test */
	enum hold_point hold;
	unsigned hold_from; /* first held transfer; lower numbers (from 1 on) pass */
	bool deaf; /* cancel() ends no transfer at once */
	int start_error;
	enum bid_outcome outcome; /* outcome without a body */
	const char *text;
	const void *body;
	size_t body_len;
	size_t first_len; /* bytes of the first half, if not 0 */
	bool breaks_off; /* after half of the body; HOLD_MIDDLE comes next, then a new body */
	bool no_header; /* never calls header() */
	uint64_t announce; /* announced size, if not 0 */
	void (*before_header)(void); /* called by the server's thread */

	/* read by the test */
	unsigned requests;
	unsigned cancels;
	unsigned right, wrong; /* results of the checks of the delivered files */
	unsigned paused; /* pieces of a body to deliver again after resume() */
	unsigned held; /* transfers that reached the holding point */
	size_t accepted; /* bytes of the last body that the receiver took */
	enum bid_outcome ended; /* outcome of the last transfer */
	unsigned done;
	bool freed_clean; /* free() found no transfer */
};

/*
 * Add a held server to the fixture's broker. The fixture owns the struct, which stays readable after the broker freed the server.
 */
struct held_server *fixture_held(struct fixture *fixture, const char *name);

/* Let the server deliver the file with the id of elf_of(@byte). */
void held_elf(struct held_server *held, uint8_t byte);

/* Add the server "held", which delivers the file with the id of elf_of(@byte) and is held at @hold. */
struct held_server *fixture_held_elf(struct fixture *fixture, uint8_t byte, enum hold_point hold);

/* Change the holding point; HOLD_NOWHERE releases held transfers. */
void held_hold(struct held_server *held, enum hold_point hold);

/* Release the transfers with lower numbers than @number. */
void held_hold_from(struct held_server *held, unsigned number);

/* Wait until @count transfers in total reached the holding point. */
void held_wait(struct held_server *held, unsigned count);

/* Wait for @count calls of start() in total. */
void held_wait_requests(struct held_server *held, unsigned count);

/* Wait for @count calls of cancel() in total. */
void held_wait_cancels(struct held_server *held, unsigned count);

/* Wait for @count paused pieces in total. */
void held_wait_paused(struct held_server *held, unsigned count);

/* Wait for the end of @count transfers in total. */
void held_wait_done(struct held_server *held, unsigned count);

#endif
