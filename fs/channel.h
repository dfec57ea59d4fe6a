/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where requests come from and answers go: /dev/fuse. To sleep and be woken is most of what a request costs, so after each one a
 * thread looks for the next for a moment before it sleeps, as sockets do (SO_BUSY_POLL in socket(7)): who opens one file after
 * another waits about half as long for each. Only one thread looks, and as long as it does the others are not woken.
 */
#ifndef BID_FS_CHANNEL_H
#define BID_FS_CHANNEL_H

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdbool.h>

struct bid_channel {
	int epoll; /* tells one thread of each request; owned; -1 if threads sleep in read(2) */
	unsigned look_us; /* how long to look, 0 if nobody does */
	atomic_bool looking; /* a thread does */
	int64_t rest_until; /* on the clock of bid_clock_ns(): nobody looks before; of the thread that is looking */
	bool greeted; /* the kernel was answered */
};

#define BID_CHANNEL_NONE ((struct bid_channel){ .epoll = -1 })

/*
 * Have the requests of @session read as above, looking for @look_us microseconds. To be called between mounting and the loop.
 * @channel is that of the session's user data, and is released after the loop. Returns 0 or a negative errno.
 */
int bid_channel_init(struct bid_channel *channel, struct fuse_session *session, unsigned look_us);

/* Answers can still be sent. */
void bid_channel_release(struct bid_channel *channel);

/* fuse_session_custom_io(), whose form depends on the version of libfuse. */
int bid_channel_use(struct fuse_session *session, const struct fuse_custom_io *io);

/*
 * The answer to FUSE_INIT is on its way out. libfuse before 3.17 wants lookups in one directory to run in parallel, so that a miss
 * that waits does not hold up the hits beside it, but leaves the bit for that out of the answer; there, it is set.
 */
void bid_channel_greet(struct iovec *iov, int count);

#endif
