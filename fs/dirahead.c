// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dirahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/thread.h"

enum {
	SLOTS = 8, /* parts in memory */
	WAKE = SLOTS / 2, /* so many are taken before the thread is woken to go on: to wake it costs what a few names do */
	MANY = 16, /* names in a part for which a thread is worth while */
};

enum state {
	EMPTY = 0,
	BUSY, /* is being read; belongs to who does */
	READY,
};

struct slot {
	enum state state;
	unsigned index; /* of the part, unless EMPTY */
	unsigned round; /* in which it was begun */
	int error; /* of a READY one */
	struct bid_dirpart part;
};

struct bid_dirahead {
	const struct bid_tree *tree; /* borrowed */
	const struct bid_node *dir; /* borrowed */
	uint64_t number;
	unsigned parts;
	atomic_uint *threads; /* of all that are open; borrowed */
	pthread_t thread;
	pthread_mutex_t lock; /* protects all below; not what is in a slot that is BUSY, or taken */
	pthread_cond_t wanted; /* more may be read */
	pthread_cond_t ready; /* something was read */
	bool started; /* there is a thread */
	unsigned current; /* the part that is taken; what is read ahead is behind it */
	unsigned round; /* changes when all is to be read anew */
	bool ended;
	struct slot slots[SLOTS]; /* part i is in i % SLOTS, or in the first one as long as there is no thread */
};

/* Those with the lock held, down to work() */

static struct slot *slot_of(struct bid_dirahead *ahead, unsigned index)
{
	return &ahead->slots[ahead->started ? index % SLOTS : 0];
}

static bool holds(const struct bid_dirahead *ahead, const struct slot *slot, unsigned index)
{
	return slot->state == READY && slot->index == index && slot->round == ahead->round;
}

/* The lock is given up meanwhile. */
static void read_part(struct bid_dirahead *ahead, unsigned index)
{
	struct slot *slot = slot_of(ahead, index);

	slot->state = BUSY;
	slot->index = index;
	slot->round = ahead->round;
	pthread_mutex_unlock(&ahead->lock);
	slot->error = bid_dirpart_read(&slot->part, ahead->tree, ahead->dir, ahead->number, index);
	pthread_mutex_lock(&ahead->lock);
	slot->state = READY;
	pthread_cond_signal(&ahead->ready);
}

/*
 * Read the first part behind the current one that nobody has read or is reading. False if there is none, or no room: the one before
 * the current one stays, because who has little room for names goes back to where a reply did not fit.
 */
static bool read_next(struct bid_dirahead *ahead)
{
	for (unsigned i = ahead->current + 1; i < ahead->parts && i < ahead->current + SLOTS - 1; i++) {
		const struct slot *slot = slot_of(ahead, i);

		if (slot->state == BUSY || holds(ahead, slot, i))
			continue;
		read_part(ahead, i);
		return true;
	}
	return false;
}

static void *work(void *user)
{
	struct bid_dirahead *ahead = user;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->ended)
		if (!read_next(ahead))
			pthread_cond_wait(&ahead->wanted, &ahead->lock);
	pthread_mutex_unlock(&ahead->lock);
	return NULL;
}

int bid_dirahead_new(const struct bid_tree *tree, const struct bid_node *dir, uint64_t number, atomic_uint *threads,
		     struct bid_dirahead **ret_ahead)
{
	struct bid_dirahead *ahead = calloc(1, sizeof(*ahead));

	if (!ahead)
		return -ENOMEM;
	ahead->tree = tree;
	ahead->dir = dir;
	ahead->number = number;
	ahead->threads = threads;
	ahead->parts = bid_tree_parts(dir);
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->wanted, NULL);
	pthread_cond_init(&ahead->ready, NULL);
	*ret_ahead = ahead;
	return 0;
}

/* With the lock held. Without a place or memory for a thread all is read by who takes it. */
static void start(struct bid_dirahead *ahead)
{
	if (atomic_fetch_add(ahead->threads, 1) < BID_DIRAHEAD_THREADS)
		ahead->started = bid_thread_start(&ahead->thread, "bid-list", work, ahead) == 0;
	if (!ahead->started)
		atomic_fetch_sub(ahead->threads, 1);
}

int bid_dirahead_take(struct bid_dirahead *ahead, unsigned index, bool anew, const struct bid_dirpart **ret_part)
{
	struct slot *slot;
	bool tried = false;
	int r;

	pthread_mutex_lock(&ahead->lock);
	slot = slot_of(ahead, ahead->current);
	/* who goes to another place, as NFS does, will not go on from there */
	if (!ahead->started && index == ahead->current + 1 && slot->state == READY && slot->part.n >= MANY)
		start(ahead);
	slot = slot_of(ahead, index);
	ahead->current = index;
	ahead->round += anew;
	if (ahead->started && index % WAKE == 0)
		pthread_cond_signal(&ahead->wanted);
	/* what could not be read ahead may be read now */
	while (!holds(ahead, slot, index) || (slot->error < 0 && !tried)) {
		if (slot->state != BUSY) {
			read_part(ahead, index);
			tried = true;
		} else if (!read_next(ahead)) { /* rather than to wait for the other */
			pthread_cond_wait(&ahead->ready, &ahead->lock);
		}
	}
	r = slot->error;
	pthread_mutex_unlock(&ahead->lock);
	if (r < 0)
		return r;
	*ret_part = &slot->part;
	return 0;
}

void bid_dirahead_free(struct bid_dirahead *ahead)
{
	if (!ahead)
		return;
	if (ahead->started) {
		pthread_mutex_lock(&ahead->lock);
		ahead->ended = true;
		pthread_cond_signal(&ahead->wanted);
		pthread_mutex_unlock(&ahead->lock);
		pthread_join(ahead->thread, NULL);
		atomic_fetch_sub(ahead->threads, 1);
	}
	for (unsigned i = 0; i < SLOTS; i++)
		bid_dirpart_release(&ahead->slots[i].part);
	pthread_cond_destroy(&ahead->ready);
	pthread_cond_destroy(&ahead->wanted);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}
