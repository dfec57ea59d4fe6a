// SPDX-License-Identifier: LGPL-2.1-or-later
#include "notify.h"

#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"

enum { END_S = 2 };

struct change {
	struct change *next;
	struct bid_id id;
	char path[]; /* "" if there is none */
};

struct bid_notifier {
	struct fuse_session *session; /* borrowed */
	struct bid_inodes *inodes; /* borrowed */
	pthread_t thread;
	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t more;
	pthread_cond_t told; /* another one was; on the monotonic clock */
	struct change *first, **last;
	uint64_t n_given, n_told; /* changes, with the names that were given before them */
	struct bid_told_name *names; /* to be taken back; owned */
	struct bid_hold *holds; /* the owners' */
	struct bid_told_name *later; /* names alone, in directories that were held; owned */
	bool ends;
};

/* With the lock held */
static bool is_held(const struct bid_notifier *notifier, uint64_t dir)
{
	for (const struct bid_hold *hold = notifier->holds; hold; hold = hold->next)
		if (hold->dir == dir)
			return true;
	return false;
}

struct bid_told_name *bid_told_name_new(uint64_t dir, const char *name)
{
	size_t size = strlen(name) + 1;
	struct bid_told_name *told = calloc(1, sizeof(*told) + size);

	if (!told)
		return NULL;
	told->dir = dir;
	memcpy(told->name, name, size);
	return told;
}

/* With the lock held */
static void put_off(struct bid_notifier *notifier, uint64_t dir, const char *name)
{
	struct bid_told_name *later = notifier->later;

	while (later && (later->dir != dir || strcmp(later->name, name) != 0))
		later = later->next;
	later = later ? NULL : bid_told_name_new(dir, name);
	if (!later)
		return;
	later->next = notifier->later;
	notifier->later = later;
}

/* What was put off and need not be any more. With the lock held. */
static struct bid_told_name *take_due(struct bid_notifier *notifier)
{
	struct bid_told_name *due = NULL, **at = &notifier->later, *name;

	while ((name = *at)) {
		if (is_held(notifier, name->dir)) {
			at = &name->next;
			continue;
		}
		*at = name->next;
		name->next = due;
		due = name;
	}
	return due;
}

static void tell_name(struct bid_notifier *notifier, uint64_t dir, const char *name)
{
	bool tells;

	pthread_mutex_lock(&notifier->lock);
	tells = !notifier->ends && !is_held(notifier, dir);
	if (!tells)
		put_off(notifier, dir, name);
	pthread_mutex_unlock(&notifier->lock);
	/* a name that it does not know is as good as told; and what the log goes to is not open in this thread */
	if (tells)
		fuse_lowlevel_notify_inval_entry(notifier->session, dir, name, strlen(name));
}

/* Of a directory that it does not hold the kernel knows no name, and most of those are none that anybody looked at. */
static void tell(struct bid_notifier *notifier, const struct bid_node *dir, const char *name)
{
	uint64_t number = bid_inode_number(dir);
	struct bid_inode buffer;

	if (bid_inodes_find(notifier->inodes, number, &buffer))
		tell_name(notifier, number, name);
}

static void tell_artifacts(struct bid_notifier *notifier, const struct bid_node *dir, const char *(*name)(enum bid_kind kind))
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		tell(notifier, dir, name((enum bid_kind)kind));
}

static void tell_id(struct bid_notifier *notifier, const struct bid_id *id)
{
	struct bid_node node = { .type = BID_NODE_IDS };
	char hex[BID_ID_HEX_MAX], debug[BID_ID_HEX_MAX + sizeof(".debug")];

	bid_id_format(id, hex);
	snprintf(debug, sizeof(debug), "%s.debug", hex + 2);
	tell(notifier, &node, hex);
	node = (struct bid_node){ .type = BID_NODE_LINKS_FAN, .fan = id->bytes[0] };
	tell(notifier, &node, hex + 2);
	node.type = BID_NODE_DEBUG_FAN;
	tell(notifier, &node, hex + 2);
	tell(notifier, &node, debug);
	node = (struct bid_node){ .type = BID_NODE_ID, .id = *id };
	tell(notifier, &node, "executable");
	tell_artifacts(notifier, &node, bid_kind_name);
}

static void tell_path(struct bid_notifier *notifier, char *path)
{
	struct bid_node node = { .type = BID_NODE_BY_PATH, .path = path };
	char *slash = strrchr(path, '/');

	if (!slash)
		return;
	*slash = '\0';
	tell(notifier, &node, slash + 1);
}

/*
 * Take back the attributes, which takes no lock, before the names. Of files no pages: if the time or size is another, the kernel
 * drops them itself, and who has mapped a file that is gone goes on with what was read.
 */
static void take_back(struct bid_notifier *notifier, const struct bid_told_name *names)
{
	for (const struct bid_told_name *one = names; one; one = one->next)
		if (one->number)
			fuse_lowlevel_notify_inval_inode(notifier->session, one->number, one->is_link ? 0 : -1, 0);
	for (const struct bid_told_name *one = names; one; one = one->next)
		if (*one->name)
			tell_name(notifier, one->dir, one->name);
}

static void free_names(struct bid_told_name *names)
{
	while (names) {
		struct bid_told_name *next = names->next;

		free(names);
		names = next;
	}
}

static void tell_change(struct bid_notifier *notifier, struct change *change)
{
	tell_id(notifier, &change->id);
	tell_path(notifier, change->path);
}

/*
 * Of what is open keep the device alone, in a table of descriptors of this thread's own. If the daemon is killed, this thread may
 * have to wait in the kernel for somebody who waits for an answer: all else is closed then, and the unmounter, which sees that,
 * ends the connection, and so both waits. Linux 5.9.
 */
static void leave_descriptors(const struct bid_notifier *notifier)
{
	unsigned device = (unsigned)fuse_session_fd(notifier->session);

	if (close_range(device + 1, ~0U, CLOSE_RANGE_UNSHARE) == 0 && device > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, device - 1, 0);
}

static void *work(void *user)
{
	struct bid_notifier *notifier = user;

	leave_descriptors(notifier);
	pthread_mutex_lock(&notifier->lock);
	while (!notifier->ends) {
		struct bid_told_name *names = notifier->names, *due = take_due(notifier);
		struct change *change = notifier->first;

		if (!change && !names && !due) {
			pthread_cond_wait(&notifier->more, &notifier->lock);
			continue;
		}
		notifier->names = NULL;
		if (change)
			notifier->first = change->next;
		if (!notifier->first)
			notifier->last = &notifier->first;
		pthread_mutex_unlock(&notifier->lock);
		take_back(notifier, names);
		take_back(notifier, due);
		free_names(names);
		free_names(due);
		if (change)
			tell_change(notifier, change);
		pthread_mutex_lock(&notifier->lock);
		if (change && ++notifier->n_told == notifier->n_given)
			pthread_cond_broadcast(&notifier->told);
		free(change);
	}
	pthread_mutex_unlock(&notifier->lock);
	return NULL;
}

int bid_notifier_new(struct fuse_session *session, struct bid_inodes *inodes, struct bid_notifier **ret_notifier)
{
	struct bid_notifier *notifier = calloc(1, sizeof(*notifier));
	pthread_condattr_t monotonic;
	int r;

	if (!notifier)
		return -ENOMEM;
	notifier->session = session;
	notifier->inodes = inodes;
	notifier->last = &notifier->first;
	pthread_mutex_init(&notifier->lock, NULL);
	pthread_cond_init(&notifier->more, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&notifier->told, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = bid_thread_start(&notifier->thread, "bid-notify", work, notifier);
	if (r < 0) {
		free(notifier);
		return r;
	}
	*ret_notifier = notifier;
	return 0;
}

bool bid_notifier_free(struct bid_notifier *notifier)
{
	struct timespec end;
	struct change *next;

	if (!notifier)
		return true;
	pthread_mutex_lock(&notifier->lock);
	notifier->ends = true;
	pthread_cond_signal(&notifier->more);
	pthread_mutex_unlock(&notifier->lock);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += END_S;
	if (pthread_timedjoin_np(notifier->thread, NULL, &end) != 0)
		return false;
	for (struct change *change = notifier->first; change; change = next) {
		next = change->next;
		free(change);
	}
	free_names(notifier->names);
	free_names(notifier->later);
	pthread_cond_destroy(&notifier->told);
	pthread_cond_destroy(&notifier->more);
	pthread_mutex_destroy(&notifier->lock);
	free(notifier);
	return true;
}

/* Without memory it is seen later. */
static void add(struct bid_notifier *notifier, const struct bid_id *id, const char *path)
{
	size_t len = strlen(path);
	struct change *change = notifier ? calloc(1, sizeof(*change) + len + 1) : NULL;

	if (!change)
		return;
	change->id = *id;
	memcpy(change->path, path, len + 1);
	pthread_mutex_lock(&notifier->lock);
	*notifier->last = change;
	notifier->last = &change->next;
	notifier->n_given++;
	pthread_cond_signal(&notifier->more);
	pthread_mutex_unlock(&notifier->lock);
}

void bid_notify_build(struct bid_notifier *notifier, const struct bid_id *id, const char *path)
{
	add(notifier, id, path ? path : "");
}

void bid_notify_wait(struct bid_notifier *notifier, unsigned ms)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (end.tv_nsec + ms * 1000000L) / 1000000000;
	end.tv_nsec = (end.tv_nsec + ms * 1000000L) % 1000000000;
	pthread_mutex_lock(&notifier->lock);
	while (notifier->n_told < notifier->n_given && pthread_cond_timedwait(&notifier->told, &notifier->lock, &end) == 0)
		;
	pthread_mutex_unlock(&notifier->lock);
}

void bid_notify_names(struct bid_notifier *notifier, struct bid_told_name *names)
{
	struct bid_told_name **last = &names;

	while (*last)
		last = &(*last)->next;
	if (!names)
		return;
	pthread_mutex_lock(&notifier->lock);
	*last = notifier->names;
	notifier->names = names;
	pthread_cond_signal(&notifier->more);
	pthread_mutex_unlock(&notifier->lock);
}

void bid_notify_hold(struct bid_notifier *notifier, struct bid_hold *hold, uint64_t dir)
{
	hold->dir = dir;
	pthread_mutex_lock(&notifier->lock);
	hold->next = notifier->holds;
	hold->link = &notifier->holds;
	if (hold->next)
		hold->next->link = &hold->next;
	notifier->holds = hold;
	pthread_mutex_unlock(&notifier->lock);
}

void bid_notify_release(struct bid_notifier *notifier, struct bid_hold *hold)
{
	if (hold->dir == 0)
		return;
	pthread_mutex_lock(&notifier->lock);
	*hold->link = hold->next;
	if (hold->next)
		hold->next->link = hold->link;
	if (notifier->later)
		pthread_cond_signal(&notifier->more);
	pthread_mutex_unlock(&notifier->lock);
}
