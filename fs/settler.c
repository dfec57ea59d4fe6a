// SPDX-License-Identifier: LGPL-2.1-or-later
#include "settler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/thread.h"
#include "ops.h"

enum { LOOK_MS = 500 };

struct bid_settler {
	struct bid_fs *fs; /* borrowed */
	pthread_t thread;
	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t more;
	bool pending; /* there may be something to settle */
	bool ends;
};

/* With the lock held. */
static void wait_a_while(struct bid_settler *settler)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	while (!settler->ends && pthread_cond_timedwait(&settler->more, &settler->lock, &until) == 0)
		;
}

static void *work(void *user)
{
	struct bid_settler *settler = user;

	pthread_mutex_lock(&settler->lock);
	while (!settler->ends) {
		bool left;

		if (!settler->pending) {
			pthread_cond_wait(&settler->more, &settler->lock);
			continue;
		}
		wait_a_while(settler);
		settler->pending = false;
		if (settler->ends)
			break;
		pthread_mutex_unlock(&settler->lock);
		left = bid_settle_rested(settler->fs);
		pthread_mutex_lock(&settler->lock);
		settler->pending |= left;
	}
	pthread_mutex_unlock(&settler->lock);
	return NULL;
}

static void release(struct bid_settler *settler)
{
	pthread_cond_destroy(&settler->more);
	pthread_mutex_destroy(&settler->lock);
	free(settler);
}

int bid_settler_new(struct bid_fs *fs, struct bid_settler **ret_settler)
{
	struct bid_settler *settler = calloc(1, sizeof(*settler));
	pthread_condattr_t monotonic;
	int r;

	if (!settler)
		return -ENOMEM;
	settler->fs = fs;
	pthread_mutex_init(&settler->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&settler->more, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = bid_thread_start(&settler->thread, "bid-settle", work, settler);
	if (r < 0) {
		release(settler);
		return r;
	}
	*ret_settler = settler;
	return 0;
}

void bid_settler_wake(struct bid_settler *settler)
{
	pthread_mutex_lock(&settler->lock);
	if (!settler->pending)
		pthread_cond_signal(&settler->more);
	settler->pending = true;
	pthread_mutex_unlock(&settler->lock);
}

void bid_settler_free(struct bid_settler *settler)
{
	if (!settler)
		return;
	pthread_mutex_lock(&settler->lock);
	settler->ends = true;
	pthread_cond_signal(&settler->more);
	pthread_mutex_unlock(&settler->lock);
	pthread_join(settler->thread, NULL);
	release(settler);
}
