/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Object directories, "<path>/<id>": the dirwalk through a whole store for verify, remove and evict, and removal of their files. */
#ifndef BID_DISK_OBJDIR_WALK_H
#define BID_DISK_OBJDIR_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "api/store.h"

/* a directory "<path>/<id>" */
struct bid_objdir {
	const char *path; /* relative to the store */
	struct bid_id id; /* on-disk id: the last component of @path */
	unsigned kinds; /* kinds of its artifacts, as a mask of 1 << enum bid_kind */
	int fd; /* the directory; borrowed */
};

/*
 * The callbacks of a dirwalk. A non-zero return ends the dirwalk and is returned. A callback may remove its subject. temp, foreign
 * and unread may be NULL.
 */
struct bid_visitor {
	int (*entry)(void *user, const struct bid_objdir *entry);
	int (*temp)(void *user, const char *path); /* a temporary file of perf: ".elf.XXXXXX" */
	int (*foreign)(void *user, const char *path); /* a file or directory outside of the layout */
	int (*unread)(void *user, const char *path, int error); /* a directory with a read error before its end */
	void *user;
};

/*
 * Run a dirwalk through the tree of original paths, in no order and without holding it in memory. It skips perf's copies of
 * /proc/kcore and its JIT dumps. Returns 0, the result of a callback, or a negative errno. An unreadable directory ends the
 * dirwalk, unless it is below the store's own and @visitor->unread is set.
 */
int bid_objdirs_each(struct bid_store *store, const struct bid_visitor *visitor);

/*
 * Prepare the same dirwalk for several threads; each calls bid_dirwalk_work() with its own visitor. Their callbacks remove nothing.
 */
struct bid_dirwalk;
int bid_objdirs_walk(struct bid_store *store, struct bid_dirwalk **ret_walk);

#endif
