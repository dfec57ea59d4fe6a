// SPDX-License-Identifier: LGPL-2.1-or-later
/* The dirwalk through the tree of original paths, by one thread or by several threads. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dents.h"
#include "disk/beneath.h"
#include "disk/entries.h"
#include "disk/layout.h"
#include "disk/store.h"

enum {
	DEPTH_MAX = 400, /* directories; each costs a descriptor and BID_DENTS_SIZE of stack while the dirwalk is below it */
	BARE_ID_MIN = 8, /* bytes; a shorter hex name with nothing below it counts as a component of a path */
	OFFERED_MAX = 64, /* directories in the queue */
};

struct walk {
	const struct bid_visitor *visitor;
	struct bid_entries_walk *shared; /* NULL if there is only one thread */
	char path[PATH_MAX];
	unsigned depth;
	bool flat; /* visit only the directory itself, not its subdirectories */
};

/*
 * Directories wait in a queue. Threads take the uppermost first, because most entries lie below those. Each thread keeps the queue
 * full even if no thread is idle: no thread then waits, and most of the dirwalk continues in its thread without a lock.
 */
struct bid_entries_walk {
	struct bid_store *store;
	atomic_int ended; /* the result of a callback, or the first error; 0 while the dirwalk runs */
	atomic_uint n; /* written under the lock */
	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t more; /* there is something in the queue, or will never be again */
	char *offered[OFFERED_MAX]; /* paths, owned; a ring */
	unsigned first;
	unsigned busy; /* threads that may still add directories */
};

/* ".elf.XXXXXX": mkstemp(3)'s form behind the name of an artifact (perf, util/util.c: copyfile_mode_ns()). */
static bool is_perf_temp(const char *name)
{
	const char *dot = strrchr(name, '.');
	char kind[16];

	if (name[0] != '.' || !dot || dot == name || strlen(dot) != 7)
		return false;
	for (const char *at = dot + 1; *at; at++)
		if (!isalnum((unsigned char)*at))
			return false;
	if ((size_t)(dot - name) >= sizeof(kind))
		return false;
	memcpy(kind, name + 1, (size_t)(dot - name) - 1);
	kind[dot - name - 1] = '\0';
	return bid_entry_kind(kind) != BID_KIND_NONE;
}

/* Is @name a directory at the top of the store that is no part of an original path? */
static bool is_passed_by(const char *name)
{
	static const char *const names[] = { BID_LAYOUT_LINKS, BID_LAYOUT_PRIVATE, "[kernel.kcore]", "jit" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static unsigned type_of(int dir, const struct bid_dent *entry)
{
	struct stat st;

	if (entry->type != DT_UNKNOWN)
		return entry->type;
	if (fstatat(dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_LNK;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* List the kinds of artifacts in the open directory @dir, and whether it has other entries. */
static int list_kinds(int dir, unsigned *ret_kinds, bool *ret_more)
{
	struct bid_dents dents;
	struct bid_dent *entry;

	*ret_kinds = 0;
	*ret_more = false;
	bid_dents_init(&dents, dir);
	while ((entry = bid_dents_next(&dents))) {
		enum bid_kind kind = bid_entry_kind(entry->name);

		if (is_dot(entry->name))
			continue;
		if (kind != BID_KIND_NONE && type_of(dir, entry) == DT_REG)
			*ret_kinds |= 1U << kind;
		else
			*ret_more = true;
	}
	return -errno;
}

/* The directory @at->path cannot be read. Where descriptors or memory are lacking none can. */
static int report_unread(const struct walk *at, int error)
{
	const struct bid_visitor *visitor = at->visitor;

	if (!visitor->unread || !*at->path || error == -EMFILE || error == -ENFILE || error == -ENOMEM)
		return error;
	return visitor->unread(visitor->user, at->path, error);
}

static int walk_directory(struct walk *at, int dir, bool inside);

/*
 * Visit a directory. It is an entry if its name is an id and it contains artifacts or nothing. With other contents it is also a
 * component of paths.
 */
static int visit_dir(struct walk *at, int parent, const char *name)
{
	struct bid_place_of entry = { .path = at->path };
	bid_auto_fd int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool named = bid_entry_name(name, &entry.id), more = true;
	int r;

	/* other processes may have removed it */
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : report_unread(at, -errno);
	entry.fd = fd;
	if (named) {
		r = list_kinds(fd, &entry.kinds, &more);
		if (r < 0)
			return report_unread(at, r);
		named = entry.kinds != 0 || (!more && entry.id.len >= BARE_ID_MIN);
		if ((!named || more) && lseek(fd, 0, SEEK_SET) < 0)
			return -errno;
	}
	if (named) {
		r = at->visitor->entry(at->visitor->user, &entry);
		if (r != 0 || !more)
			return r;
	}
	if (at->flat && !named)
		return 0;
	at->depth++;
	r = walk_directory(at, fd, named);
	at->depth--;
	return r;
}

static int visit_file(struct walk *at, const char *name, bool inside)
{
	const struct bid_visitor *visitor = at->visitor;
	struct bid_place_of entry = { .path = at->path, .is_file = true, .fd = -1 };

	if (inside && bid_entry_kind(name) != BID_KIND_NONE)
		return 0;
	if (inside && is_perf_temp(name))
		return visitor->temp ? visitor->temp(visitor->user, at->path) : 0;
	if (bid_entry_name(name, &entry.id) && entry.id.len >= BARE_ID_MIN) {
		entry.kinds = strncmp(at->path, "[kernel.kallsyms]/", 18) == 0 ? 1U << BID_KIND_KALLSYMS : 1U << BID_KIND_ELF;
		return visitor->entry(visitor->user, &entry);
	}
	return visitor->foreign ? visitor->foreign(visitor->user, at->path) : 0;
}

/*
 * Leave the directory @at->path to an idle thread. Returns false if this thread must visit it. A directory named by an id always
 * stays with its thread.
 */
static bool offer_directory(const struct walk *at, const char *name)
{
	struct bid_entries_walk *shared = at->shared;
	struct bid_id id;
	char *path = NULL;

	if (!shared || atomic_load_explicit(&shared->n, memory_order_relaxed) >= OFFERED_MAX || bid_entry_name(name, &id))
		return false;
	path = strdup(at->path);
	if (!path)
		return false;
	pthread_mutex_lock(&shared->lock);
	if (shared->n < OFFERED_MAX) {
		shared->offered[(shared->first + shared->n++) % OFFERED_MAX] = path;
		path = NULL;
		pthread_cond_signal(&shared->more);
	}
	pthread_mutex_unlock(&shared->lock);
	free(path);
	return !path;
}

/* @inside: @dir is an entry. */
static int walk_directory(struct walk *at, int dir, bool inside)
{
	size_t len = strlen(at->path);
	struct bid_dents dents;
	struct bid_dent *entry;
	int r = 0;

	bid_dents_init(&dents, dir);
	for (errno = 0; r == 0 && (entry = bid_dents_next(&dents)); errno = 0) {
		size_t name = strlen(entry->name);
		unsigned type;

		if (is_dot(entry->name) || (len == 0 && is_passed_by(entry->name)))
			continue;
		if (len + name + 2 > sizeof(at->path))
			continue;
		if (len > 0)
			at->path[len] = '/';
		memcpy(at->path + len + (len > 0), entry->name, name + 1);
		type = type_of(dir, entry);
		if (type == DT_DIR && at->depth < DEPTH_MAX)
			r = offer_directory(at, entry->name) ? 0 : visit_dir(at, dir, entry->name);
		else if (type == DT_REG)
			r = visit_file(at, entry->name, inside);
		else if (at->visitor->foreign)
			r = at->visitor->foreign(at->visitor->user, at->path);
		at->path[len] = '\0';
	}
	return r != 0 || errno == 0 ? r : report_unread(at, -errno);
}

static int walk_from(struct bid_store *store, const char *path, bool flat, struct bid_entries_walk *shared,
		     const struct bid_visitor *visitor)
{
	struct walk at = { .visitor = visitor, .shared = shared, .flat = flat };
	bid_auto_fd int dir = -1;
	int r;

	if (strlen(path) >= sizeof(at.path))
		return -ENAMETOOLONG;
	memcpy(at.path, path, strlen(path) + 1);
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++)
		at.depth++;
	r = bid_beneath_open(bid_store_root(store), path, O_RDONLY | O_DIRECTORY, &dir);
	if (r < 0)
		return r == -ENOENT ? r : report_unread(&at, r);
	return walk_directory(&at, dir, false);
}

int bid_entries_each(struct bid_store *store, const struct bid_visitor *visitor)
{
	return walk_from(store, "", false, NULL, visitor);
}

int bid_entries_of_path(struct bid_store *store, const char *path, const struct bid_visitor *visitor)
{
	return walk_from(store, path, true, NULL, visitor);
}

int bid_entries_walk_new(struct bid_store *store, struct bid_entries_walk **ret_walk)
{
	struct bid_entries_walk *shared = calloc(1, sizeof(*shared));
	char *top = strdup("");

	if (!shared || !top) {
		free(shared);
		free(top);
		return -ENOMEM;
	}
	shared->store = store;
	shared->offered[0] = top;
	shared->n = 1;
	pthread_mutex_init(&shared->lock, NULL);
	pthread_cond_init(&shared->more, NULL);
	*ret_walk = shared;
	return 0;
}

/* Return the next directory, which the caller frees; NULL at the end of the dirwalk. */
static char *take_directory(struct bid_entries_walk *shared)
{
	char *path = NULL;

	pthread_mutex_lock(&shared->lock);
	while (shared->n == 0 && shared->busy > 0 && atomic_load(&shared->ended) == 0)
		pthread_cond_wait(&shared->more, &shared->lock);
	if (shared->n > 0 && atomic_load(&shared->ended) == 0) {
		path = shared->offered[shared->first];
		shared->first = (shared->first + 1) % OFFERED_MAX;
		shared->n--;
		shared->busy++;
	}
	pthread_mutex_unlock(&shared->lock);
	return path;
}

static void end_directory(struct bid_entries_walk *shared, int r)
{
	int none = 0;

	if (r != 0)
		atomic_compare_exchange_strong(&shared->ended, &none, r);
	pthread_mutex_lock(&shared->lock);
	if (--shared->busy == 0 || r != 0)
		pthread_cond_broadcast(&shared->more);
	pthread_mutex_unlock(&shared->lock);
}

int bid_entries_walk_work(struct bid_entries_walk *shared, const struct bid_visitor *visitor)
{
	char *path;

	while ((path = take_directory(shared))) {
		int r = walk_from(shared->store, path, false, shared, visitor);

		/* any directory except the first may be gone by now */
		end_directory(shared, r == -ENOENT && *path ? 0 : r);
		free(path);
	}
	return atomic_load(&shared->ended);
}

void bid_entries_walk_free(struct bid_entries_walk *shared)
{
	if (!shared)
		return;
	for (; shared->n > 0; shared->n--) {
		free(shared->offered[shared->first]);
		shared->first = (shared->first + 1) % OFFERED_MAX;
	}
	pthread_cond_destroy(&shared->more);
	pthread_mutex_destroy(&shared->lock);
	free(shared);
}
