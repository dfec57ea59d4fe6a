/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where requests come from: /dev/fuse. To sleep and be woken is most of what a request costs, so after each one a thread looks for
 * the next for a moment before it sleeps, as sockets do (SO_BUSY_POLL in socket(7)): who opens one file after another waits about
 * half as long for each. Only one thread looks, and as long as it does the others are not woken.
 */
#ifndef BID_FS_CHANNEL_H
#define BID_FS_CHANNEL_H

#include <fuse_lowlevel.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

struct bid_channel {
	struct fuse_session *session; /* borrowed */
	int epoll; /* tells one thread of each request, and all of the end; owned */
	int end; /* an eventfd that can be read once the session is over; owned */
	unsigned look_us; /* how long to look, 0 if nobody does */
	atomic_bool looking; /* a thread does */
	int64_t rest_until; /* on the clock of bid_clock_ns(): nobody looks before; of the thread that is looking */
};

#define BID_CHANNEL_NONE ((struct bid_channel){ .epoll = -1, .end = -1 })

/*
 * Have the requests of @session read as above, looking for @look_us microseconds. To be called between mounting and the loop;
 * @channel is released after that. Returns 0 or a negative errno.
 */
int bid_channel_init(struct bid_channel *channel, struct fuse_session *session, unsigned look_us);

/* Answers can still be sent. */
void bid_channel_release(struct bid_channel *channel);

/*
 * The next request, as fuse_session_receive_buf() has it, by any number of threads. Blocks. Returns its size, 0 once the session is
 * over, or a negative errno. What is in @buffer afterwards is the caller's to free.
 */
int bid_channel_receive(struct bid_channel *channel, struct fuse_buf *buffer);

/* The session is over: whoever receives is told so, now and later. */
void bid_channel_end(struct bid_channel *channel);

/* Wait for that, or for a signal of @unblocked, which the caller has blocked otherwise. Returns 0 or -EINTR. */
int bid_channel_wait(struct bid_channel *channel, const sigset_t *unblocked);

#endif
