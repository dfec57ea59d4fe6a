// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sharer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/thread.h"

enum { WAITING_MAX = 256 };

struct bid_sharer {
	struct bid_staging *staging; /* borrowed */
	struct bid_notifier *notifier; /* borrowed, until it ends */
	pthread_t thread;
	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t more;
	bool ends;
	struct bid_staged *waiting[WAITING_MAX]; /* a ring; each is a use of it */
	unsigned first, n;
};

static void share(struct bid_sharer *sharer, struct bid_staged *staged)
{
	int r = bid_stage_share(staged->stage);

	if (r < 0)
		bid_info("'%s/%s' is for who wrote it: what it is a copy of is not found as it was", staged->dir, staged->name);
	pthread_mutex_lock(&sharer->lock);
	if (r == 0 && !sharer->ends)
		bid_notify_build(sharer->notifier, &staged->id, NULL);
	pthread_mutex_unlock(&sharer->lock);
}

static void *work(void *user)
{
	struct bid_sharer *sharer = user;

	pthread_mutex_lock(&sharer->lock);
	for (;;) {
		struct bid_staged *staged;

		while (sharer->n == 0 && !sharer->ends)
			pthread_cond_wait(&sharer->more, &sharer->lock);
		if (sharer->ends)
			break;
		staged = sharer->waiting[sharer->first];
		sharer->first = (sharer->first + 1) % WAITING_MAX;
		sharer->n--;
		pthread_mutex_unlock(&sharer->lock);
		share(sharer, staged);
		bid_staged_put(sharer->staging, staged);
		pthread_mutex_lock(&sharer->lock);
	}
	pthread_mutex_unlock(&sharer->lock);
	return NULL;
}

int bid_sharer_new(struct bid_staging *staging, struct bid_notifier *notifier, struct bid_sharer **ret_sharer)
{
	struct bid_sharer *sharer = calloc(1, sizeof(*sharer));
	int r;

	if (!sharer)
		return -ENOMEM;
	sharer->staging = staging;
	sharer->notifier = notifier;
	pthread_mutex_init(&sharer->lock, NULL);
	pthread_cond_init(&sharer->more, NULL);
	r = bid_thread_start(&sharer->thread, "bid-share", work, sharer);
	if (r < 0) {
		free(sharer);
		return r;
	}
	*ret_sharer = sharer;
	return 0;
}

void bid_sharer_add(struct bid_sharer *sharer, const struct bid_staged *staged)
{
	struct bid_staged *used = sharer ? bid_staging_get(sharer->staging, staged->serial) : NULL;

	if (!used)
		return;
	pthread_mutex_lock(&sharer->lock);
	if (sharer->n < WAITING_MAX && !sharer->ends) {
		sharer->waiting[(sharer->first + sharer->n++) % WAITING_MAX] = used;
		used = NULL;
		pthread_cond_signal(&sharer->more);
	}
	pthread_mutex_unlock(&sharer->lock);
	bid_staged_put(sharer->staging, used);
}

void bid_sharer_end(struct bid_sharer *sharer)
{
	if (!sharer)
		return;
	pthread_mutex_lock(&sharer->lock);
	sharer->ends = true;
	pthread_cond_signal(&sharer->more);
	pthread_mutex_unlock(&sharer->lock);
}

void bid_sharer_free(struct bid_sharer *sharer)
{
	if (!sharer)
		return;
	pthread_join(sharer->thread, NULL);
	for (; sharer->n > 0; sharer->n--, sharer->first = (sharer->first + 1) % WAITING_MAX)
		bid_staged_put(sharer->staging, sharer->waiting[sharer->first]);
	pthread_cond_destroy(&sharer->more);
	pthread_mutex_destroy(&sharer->lock);
	free(sharer);
}
