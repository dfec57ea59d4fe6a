// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/dirwalk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/getdents.h"
#include "disk/beneath.h"

enum { CHUNK = 8 * 1024 }; /* bytes of a directory that a thread reads before another thread may read on */

/* an open directory */
struct dir {
	int fd; /* owned */
	uint64_t note;
	atomic_uint refs; /* the reader, and each entry of the stack */
	char path[];
};

/* an entry of the stack: an unopened directory, or the unread rest of an open one */
struct walk_pending {
	struct walk_pending *next;
	struct dir *dir; /* a counted reference */
	char name[]; /* name of the directory in @dir; "" for the rest of @dir */
};

struct bid_dirwalk {
	const struct bid_dirwalk_ops *ops;
	atomic_int ended; /* the result that ended the dirwalk */
	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t more; /* there is something in the stack, or will never be again */
	struct walk_pending *stack; /* last in, first out: few directories are open at a time */
	unsigned busy; /* threads that may still add to the stack */
};

static void dir_unref(struct dir *dir)
{
	if (atomic_fetch_sub(&dir->refs, 1) > 1)
		return;
	close(dir->fd);
	free(dir);
}

/* Takes over @fd, also on failure. */
static struct dir *dir_new(int fd, const char *parent, const char *name, uint64_t note)
{
	size_t parent_len = strlen(parent), name_len = strlen(name);
	struct dir *dir = malloc(sizeof(*dir) + parent_len + name_len + 2);

	if (!dir) {
		close(fd);
		return NULL;
	}
	*dir = (struct dir){ .fd = fd, .note = note, .refs = 1 };
	memcpy(dir->path, parent, parent_len);
	if (name_len > 0)
		dir->path[parent_len++] = '/';
	memcpy(dir->path + parent_len, name, name_len + 1);
	return dir;
}

/* Put an entry on the list @first. */
static int add_pending(struct dir *dir, const char *name, struct walk_pending **first)
{
	size_t len = strlen(name) + 1;
	struct walk_pending *pending = malloc(sizeof(*pending) + len);

	if (!pending)
		return -ENOMEM;
	pending->next = *first;
	pending->dir = dir;
	memcpy(pending->name, name, len);
	atomic_fetch_add(&dir->refs, 1);
	*first = pending;
	return 0;
}

static void pending_free(struct walk_pending *pending)
{
	dir_unref(pending->dir);
	free(pending);
}

int bid_dirwalk_new(int fd, const char *path, uint64_t note, const struct bid_dirwalk_ops *ops, struct bid_dirwalk **ret_walk)
{
	struct bid_dirwalk *walk = calloc(1, sizeof(*walk));
	struct dir *dir = dir_new(fd, path, "", note);
	int r = walk && dir ? add_pending(dir, "", &walk->stack) : -ENOMEM;

	if (dir)
		dir_unref(dir);
	if (r < 0) {
		free(walk);
		return r;
	}
	walk->ops = ops;
	pthread_mutex_init(&walk->lock, NULL);
	pthread_cond_init(&walk->more, NULL);
	*ret_walk = walk;
	return 0;
}

void bid_dirwalk_free(struct bid_dirwalk *walk)
{
	struct walk_pending *pending;

	if (!walk)
		return;
	while ((pending = walk->stack)) {
		walk->stack = pending->next;
		pending_free(pending);
	}
	pthread_cond_destroy(&walk->more);
	pthread_mutex_destroy(&walk->lock);
	free(walk);
}

void bid_dirwalk_end(struct bid_dirwalk *walk, int result)
{
	int none = 0;

	atomic_compare_exchange_strong(&walk->ended, &none, result);
	pthread_mutex_lock(&walk->lock);
	pthread_cond_broadcast(&walk->more);
	pthread_mutex_unlock(&walk->lock);
}

/* Take the next entry of the stack; NULL at the end of the dirwalk. */
static struct walk_pending *take_pending(struct bid_dirwalk *walk)
{
	struct walk_pending *pending = NULL;

	pthread_mutex_lock(&walk->lock);
	while (!walk->stack && walk->busy > 0 && atomic_load(&walk->ended) == 0)
		pthread_cond_wait(&walk->more, &walk->lock);
	if (walk->stack && atomic_load(&walk->ended) == 0) {
		pending = walk->stack;
		walk->stack = pending->next;
		walk->busy++;
	}
	pthread_mutex_unlock(&walk->lock);
	return pending;
}

static void end_pending(struct bid_dirwalk *walk)
{
	pthread_mutex_lock(&walk->lock);
	if (--walk->busy == 0)
		pthread_cond_broadcast(&walk->more);
	pthread_mutex_unlock(&walk->lock);
}

/* Put the list from @first to @last on the stack. */
static void push_pending(struct bid_dirwalk *walk, struct walk_pending *first, struct walk_pending *last)
{
	pthread_mutex_lock(&walk->lock);
	last->next = walk->stack;
	walk->stack = first;
	pthread_cond_broadcast(&walk->more);
	pthread_mutex_unlock(&walk->lock);
}

static int report_unopened(const struct bid_dirwalk *walk, void *user, const struct walk_pending *pending, int error)
{
	char path[PATH_MAX + NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s/%s", pending->dir->path, pending->name);
	return walk->ops->error(user, path, error);
}

/* Open the directory @pending. @ret_dir is NULL for a directory to skip or a removed one. */
static int open_pending(const struct bid_dirwalk *walk, void *user, const struct walk_pending *pending, struct dir **ret_dir)
{
	struct dir *parent = pending->dir, *dir;
	bool enter = false;
	int fd, r;

	*ret_dir = NULL;
	if (strlen(parent->path) + strlen(pending->name) + 1 >= PATH_MAX)
		return report_unopened(walk, user, pending, -ENAMETOOLONG);
	fd = openat(parent->fd, pending->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : report_unopened(walk, user, pending, -errno);
	dir = dir_new(fd, parent->path, pending->name, parent->note);
	if (!dir)
		return -ENOMEM;
	r = walk->ops->enter(user, dir->path, dir->fd, &dir->note, &enter);
	if (r == 0 && enter)
		*ret_dir = dir;
	else
		dir_unref(dir);
	return r;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Return the type of the entry, by stat(2) where the file system does not provide it. */
static unsigned type_of(const struct dir *dir, const struct bid_dent *entry)
{
	struct stat st;

	if (entry->type != DT_UNKNOWN)
		return entry->type;
	return fstatat(dir->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN : IFTODT(st.st_mode);
}

/*
 * Leave the directories among the @size bytes of @entries to any thread, and with @more the unread rest of @dir, which comes last.
 * Sets the type of each entry.
 */
static int push_dirs(struct bid_dirwalk *walk, struct dir *dir, char *entries, size_t size, bool more)
{
	struct walk_pending *first = NULL, *last = NULL;
	int r = more ? add_pending(dir, "", &first) : 0;

	last = first;
	for (size_t at = 0; at < size && r == 0;) {
		struct bid_dent *entry = (void *)(entries + at);

		at += entry->len;
		entry->type = (uint8_t)type_of(dir, entry);
		if (entry->type == DT_DIR && !is_dots(entry->name))
			r = add_pending(dir, entry->name, &first);
		if (!last)
			last = first;
	}
	if (first)
		push_pending(walk, first, last);
	return r;
}

static int visit_files(struct bid_dirwalk *walk, void *user, const struct dir *dir, const char *entries, size_t size)
{
	int r = 0;

	for (size_t at = 0; at < size && r == 0;) {
		const struct bid_dent *entry = (const void *)(entries + at);

		at += entry->len;
		if (entry->type == DT_DIR)
			continue;
		r = atomic_load_explicit(&walk->ended, memory_order_relaxed);
		if (r == 0)
			r = walk->ops->file(user, &(struct bid_dirwalk_file){ .dir = dir->fd,
									      .dir_path = dir->path,
									      .name = entry->name,
									      .type = entry->type,
									      .note = dir->note });
	}
	return r;
}

/* Read @dir to its end, or leave the rest of a large one to any thread. */
static int read_dir(struct bid_dirwalk *walk, void *user, struct dir *dir)
{
	_Alignas(struct bid_dent) char entries[CHUNK];
	bool more = false;
	int r = 0;

	while (r == 0 && !more) {
		long size = syscall(SYS_getdents64, dir->fd, entries, sizeof(entries));

		if (size == 0 || (size < 0 && errno == ENOENT))
			return 0; /* the end; or the directory was removed */
		if (size < 0)
			return walk->ops->error(user, dir->path, -errno);
		more = size > CHUNK / 2;
		r = push_dirs(walk, dir, entries, (size_t)size, more);
		if (r == 0)
			r = visit_files(walk, user, dir, entries, (size_t)size);
	}
	return r;
}

int bid_dirwalk_work(struct bid_dirwalk *walk, void *user)
{
	struct walk_pending *pending;

	while ((pending = take_pending(walk))) {
		struct dir *dir = NULL;
		int r = 0;

		if (*pending->name)
			r = open_pending(walk, user, pending, &dir);
		if (r == 0 && (dir || !*pending->name))
			r = read_dir(walk, user, dir ? dir : pending->dir);
		if (dir)
			dir_unref(dir);
		pending_free(pending);
		if (r != 0)
			bid_dirwalk_end(walk, r);
		end_pending(walk);
	}
	return atomic_load(&walk->ended);
}

int bid_dirwalk_each(int root, const char *path, const struct bid_dirwalk_ops *ops, void *user)
{
	struct bid_dirwalk *walk = NULL;
	int fd = -1;
	int r = bid_beneath_open(root, path, O_RDONLY | O_DIRECTORY, &fd);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = bid_dirwalk_new(fd, "", 0, ops, &walk);
	if (r == 0)
		r = bid_dirwalk_work(walk, user);
	bid_dirwalk_free(walk);
	return r;
}
