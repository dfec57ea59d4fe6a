// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/scan/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dents.h"

enum {
	ENTRIES = 64 * 1024, /* bytes of a directory per read; readdir(3) reads half as much */
	PIECE = 4 * 1024, /* bytes of them for one thread, approximately */
	PIECES_MAX = 64, /* pieces in the queue */
};

/* an open directory: it is being read, or has unopened directories below it */
struct dir {
	int fd; /* owned, except for the first */
	bool borrowed; /* the first: the caller's */
	uint64_t note;
	atomic_uint refs; /* the reader, each pending directory below it, and each pending piece of it */
	char path[];
};

/* an unopened directory, or a piece of an open one */
struct pending {
	struct pending *next;
	struct dir *parent; /* a counted reference; NULL for the first, which is open */
	struct dir *first;
	size_t piece; /* bytes at name with entries of the parent; 0 for a directory */
	_Alignas(struct bid_dent) char name[];
};

struct bid_walk {
	const struct bid_walk_ops *ops;
	void *user;
	atomic_int error; /* the error that ended the dirwalk */
	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t more; /* there is something in the stack, or will never be again */
	struct pending *stack; /* last in, first out: few directories are open at a time */
	unsigned busy; /* threads that may still add to the stack */
	atomic_uint pieces; /* in the stack, more or less */
};

static void dir_unref(struct dir *dir)
{
	if (atomic_fetch_sub(&dir->refs, 1) > 1)
		return;
	if (!dir->borrowed)
		close(dir->fd);
	free(dir);
}

static struct dir *dir_new(int fd, bool borrowed, uint64_t note, const char *parent, const char *name)
{
	size_t parent_len = strlen(parent), name_len = strlen(name);
	struct dir *dir = malloc(sizeof(*dir) + parent_len + name_len + 2);

	if (!dir)
		return NULL;
	dir->fd = fd;
	dir->borrowed = borrowed;
	dir->note = note;
	atomic_init(&dir->refs, 1);
	memcpy(dir->path, parent, parent_len);
	if (name_len > 0)
		dir->path[parent_len++] = '/';
	memcpy(dir->path + parent_len, name, name_len + 1);
	return dir;
}

static void pending_free(struct pending *pending)
{
	if (pending->parent)
		dir_unref(pending->parent);
	if (pending->first)
		dir_unref(pending->first);
	free(pending);
}

int bid_walk_new(int fd, const char *path, uint64_t note, const struct bid_walk_ops *ops, void *user, struct bid_walk **ret_walk)
{
	struct bid_walk *walk = calloc(1, sizeof(*walk));
	struct pending *pending = calloc(1, sizeof(*pending) + 1);
	struct dir *dir = dir_new(fd, true, note, strcmp(path, "/") == 0 ? "" : path, "");

	if (!walk || !pending || !dir) {
		free(walk);
		free(pending);
		free(dir);
		return -ENOMEM;
	}
	pending->first = dir;
	walk->ops = ops;
	walk->user = user;
	walk->stack = pending;
	pthread_mutex_init(&walk->lock, NULL);
	pthread_cond_init(&walk->more, NULL);
	*ret_walk = walk;
	return 0;
}

void bid_walk_free(struct bid_walk *walk)
{
	struct pending *pending;

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

void bid_walk_end(struct bid_walk *walk, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&walk->error, &none, error);
	pthread_mutex_lock(&walk->lock);
	pthread_cond_broadcast(&walk->more);
	pthread_mutex_unlock(&walk->lock);
}

/* Take the next directory; NULL at the end of the dirwalk. */
static struct pending *take_directory(struct bid_walk *walk)
{
	struct pending *pending = NULL;

	pthread_mutex_lock(&walk->lock);
	while (!walk->stack && walk->busy > 0 && atomic_load(&walk->error) == 0)
		pthread_cond_wait(&walk->more, &walk->lock);
	if (walk->stack && atomic_load(&walk->error) == 0) {
		pending = walk->stack;
		walk->stack = pending->next;
		walk->busy++;
	}
	pthread_mutex_unlock(&walk->lock);
	return pending;
}

static void end_directory(struct bid_walk *walk)
{
	pthread_mutex_lock(&walk->lock);
	if (--walk->busy == 0)
		pthread_cond_broadcast(&walk->more);
	pthread_mutex_unlock(&walk->lock);
}

static void push_directories(struct bid_walk *walk, struct pending *first, struct pending *last)
{
	pthread_mutex_lock(&walk->lock);
	last->next = walk->stack;
	walk->stack = first;
	pthread_cond_broadcast(&walk->more);
	pthread_mutex_unlock(&walk->lock);
}

/* Open the directory @pending. Returns NULL with errno 0 for a directory to skip or a removed one. */
static struct dir *open_dir(struct bid_walk *walk, const struct pending *pending)
{
	bid_auto_fd int fd = -1;
	struct dir *dir;
	struct stat st;
	uint64_t note;

	if (pending->first) {
		atomic_fetch_add(&pending->first->refs, 1);
		return pending->first;
	}
	if (strlen(pending->parent->path) + strlen(pending->name) + 1 >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	fd = openat(pending->parent->fd, pending->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
			errno = 0; /* the directory was removed */
		return NULL;
	}
	note = pending->parent->note;
	if (!walk->ops->enter(walk->user, fd, &st, &note)) {
		errno = 0;
		return NULL;
	}
	dir = dir_new(fd, false, note, pending->parent->path, pending->name);
	if (dir)
		bid_steal_fd(&fd);
	return dir;
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
	if (fstatat(dir->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
}

/* Push the directories among the entries first, as work for other threads. */
static int push_dirs(struct bid_walk *walk, struct dir *dir, char *entries, size_t size)
{
	struct pending *first = NULL, *last = NULL;
	int r = 0;

	for (size_t at = 0; at < size;) {
		struct bid_dent *entry = (void *)(entries + at);
		size_t len = strlen(entry->name);
		struct pending *pending;

		at += entry->len;
		if (is_dots(entry->name))
			continue;
		entry->type = (uint8_t)type_of(dir, entry);
		if (entry->type != DT_DIR)
			continue;
		pending = malloc(sizeof(*pending) + len + 1);
		if (!pending) {
			r = -ENOMEM;
			break;
		}
		*pending = (struct pending){ .next = first, .parent = dir };
		memcpy(pending->name, entry->name, len + 1);
		atomic_fetch_add(&dir->refs, 1);
		first = pending;
		if (!last)
			last = pending;
	}
	if (first)
		push_directories(walk, first, last);
	return r;
}

static int each_file(struct bid_walk *walk, unsigned worker, const struct dir *dir, const char *entries, size_t size)
{
	for (size_t at = 0; at < size;) {
		const struct bid_dent *entry = (const void *)(entries + at);
		struct bid_walk_file file = { .dir = dir->fd, .dir_path = dir->path, .name = entry->name, .note = dir->note };
		int r;

		at += entry->len;
		if (entry->type != DT_REG)
			continue;
		r = atomic_load_explicit(&walk->error, memory_order_relaxed);
		if (r == 0)
			r = walk->ops->file(walk->user, worker, &file);
		if (r != 0)
			return r;
	}
	return 0;
}

/* Return the end of the piece that begins at @at of @size bytes of entries. */
static size_t piece_end(const char *entries, size_t at, size_t size)
{
	size_t end = at;

	while (end < size && end - at < PIECE)
		end += ((const struct bid_dent *)(const void *)(entries + end))->len;
	return end;
}

/* A directory of many files is for all threads: the pieces of the entries but the first go to the stack, while there is room. */
static int push_pieces(struct bid_walk *walk, struct dir *dir, const char *entries, size_t size, size_t *ret_rest)
{
	size_t at = piece_end(entries, 0, size);

	while (at < size && atomic_load(&walk->pieces) < PIECES_MAX) {
		size_t end = piece_end(entries, at, size);
		struct pending *pending = malloc(sizeof(*pending) + end - at);

		if (!pending)
			return -ENOMEM;
		*pending = (struct pending){ .parent = dir, .piece = end - at };
		memcpy(pending->name, entries + at, end - at);
		atomic_fetch_add(&dir->refs, 1);
		atomic_fetch_add(&walk->pieces, 1);
		push_directories(walk, pending, pending);
		at = end;
	}
	*ret_rest = at;
	return 0;
}

static int read_dir(struct bid_walk *walk, unsigned worker, struct dir *dir, char *entries)
{
	for (;;) {
		long size = syscall(SYS_getdents64, dir->fd, entries, ENTRIES);
		size_t rest;
		int r;

		if (size < 0 && errno == ENOENT)
			return 0; /* removed */
		if (size < 0) {
			walk->ops->trouble(walk->user, worker, dir->path, -errno);
			return 0;
		}
		if (size == 0)
			return 0;
		r = push_dirs(walk, dir, entries, (size_t)size);
		if (r == 0)
			r = push_pieces(walk, dir, entries, (size_t)size, &rest);
		if (r == 0)
			r = each_file(walk, worker, dir, entries, piece_end(entries, 0, (size_t)size));
		if (r == 0)
			r = each_file(walk, worker, dir, entries + rest, (size_t)size - rest);
		if (r != 0)
			return r;
	}
}

static void no_dir(struct bid_walk *walk, unsigned worker, const struct pending *pending, int error)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", pending->parent->path, pending->name);
	walk->ops->trouble(walk->user, worker, path, error);
}

int bid_walk_work(struct bid_walk *walk, unsigned worker)
{
	bid_auto_free char *entries = malloc(ENTRIES);
	struct pending *pending;

	if (!entries)
		bid_walk_end(walk, -ENOMEM);
	while ((pending = take_directory(walk))) {
		struct dir *dir = pending->piece > 0 ? NULL : open_dir(walk, pending);
		int r = 0;

		if (pending->piece > 0) {
			atomic_fetch_sub(&walk->pieces, 1);
			r = each_file(walk, worker, pending->parent, pending->name, pending->piece);
		} else if (dir) {
			r = read_dir(walk, worker, dir, entries);
			dir_unref(dir);
		} else if (errno == ENOMEM) {
			r = -ENOMEM;
		} else if (errno != 0) {
			no_dir(walk, worker, pending, -errno);
		}
		pending_free(pending);
		if (r != 0)
			bid_walk_end(walk, r);
		end_directory(walk);
	}
	return atomic_load(&walk->error);
}
