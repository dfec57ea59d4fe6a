/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names under which objects lie: every "<path>/<id>" of a store. For those who look at a whole store or take something out of
 * it: verify, remove, evict.
 */
#ifndef BID_DISK_ENTRIES_H
#define BID_DISK_ENTRIES_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "api/store.h"

/* A directory "<path>/<id>", or in perf's old layout a file of that name. */
struct bid_place_of {
	const char *path; /* relative to the store */
	struct bid_id id; /* as filed: what its last component says */
	unsigned kinds; /* of the artifacts in it, as 1 << enum bid_kind; 0: nothing lies in it */
	bool is_file;
	int fd; /* the directory, or -1 if it is a file; borrowed */
};

/*
 * Who is called for what is met; a non-zero return ends the walk and is returned. What is called for may be removed by whoever is
 * called. temp, foreign and unread may be NULL.
 */
struct bid_visitor {
	int (*entry)(void *user, const struct bid_place_of *entry);
	int (*temp)(void *user, const char *path); /* what perf writes to before it links it: ".elf.XXXXXX" */
	int (*foreign)(void *user, const char *path); /* anything that is not of the layout */
	int (*unread)(void *user, const char *path, int error); /* a directory of which not all was seen */
	void *user;
};

/*
 * Walk the tree of original paths, in no order and without holding it in memory. perf's copies of /proc/kcore and its JIT dumps are
 * no artifacts and are passed by. Returns 0, what a callee returned, or a negative errno; a directory that cannot be read ends the
 * walk, unless it is below the store's own and there is @visitor->unread.
 */
int bid_entries_each(struct bid_store *store, const struct bid_visitor *visitor);

/* The same by several threads, each with a visitor of its own, which may remove nothing. */
struct bid_entries_walk;
int bid_entries_walk_new(struct bid_store *store, struct bid_entries_walk **ret_walk);

/* Take part in it until it is over. Returns as bid_entries_each(), to all of them the same. */
int bid_entries_walk_work(struct bid_entries_walk *walk, const struct bid_visitor *visitor);

/* After all have returned. @walk may be NULL. */
void bid_entries_walk_free(struct bid_entries_walk *walk);

/* As bid_entries_each(), of what lies directly below the original path @path, "usr/bin/gcc". -ENOENT if there is none. */
int bid_entries_of_path(struct bid_store *store, const char *path, const struct bid_visitor *visitor);

/*
 * Take the artifacts of @kinds out of @path, and with all of them gone the directory too, and parents that are empty then. Files
 * that are not of the layout stay, and keep the directory. An empty probe cache says nothing, and does not stay alone. Returns the
 * kinds that are left, or a negative errno.
 */
int bid_entry_take(struct bid_store *store, const char *path, unsigned kinds);

/* unlink(2) below the store. */
int bid_entry_unlink(struct bid_store *store, const char *path);

/* rmdir(2) below the store. */
int bid_entry_rmdir(struct bid_store *store, const char *path);

/* Remove the directory @path, and its parents, as long as they are empty. */
void bid_entry_prune(struct bid_store *store, const char *path);

/* The id under which @name is filed, if it has the form. */
bool bid_entry_name(const char *name, struct bid_id *ret_id);

/* The kind whose file in the store has the name @name, or BID_KIND_NONE. */
enum bid_kind bid_entry_kind(const char *name);

#endif
