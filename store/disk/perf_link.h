/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* perf's link of an id, ".build-id/xx/rest": read, make, change and remove it while other processes use it. */
#ifndef BID_DISK_PERF_LINK_H
#define BID_DISK_PERF_LINK_H

#include <limits.h>
#include <stdbool.h>

#include "api/store.h"

/* The state of perf's link for an id. */
enum bid_perf_link_state {
	BID_PERF_LINK_NONE = 0, /* nothing */
	BID_PERF_LINK_GOOD, /* a link to "<path>/<id>"; the target exists, or is unreadable */
	BID_PERF_LINK_DANGLING, /* a link of that form without a target */
	BID_PERF_LINK_MISMATCHED, /* a link to the directory of another id, or of none */
	BID_PERF_LINK_FOREIGN, /* a link of another form, never followed */
	BID_PERF_LINK_ODD, /* something else: a file, a directory */
};

/* Read the link of the on-disk id @disk_id. Sets @ret_target with GOOD, DANGLING and MISMATCHED. */
enum bid_perf_link_state bid_perf_link_look(struct bid_store *store, const struct bid_id *disk_id,
					    char ret_target[static PATH_MAX]);

/* As bid_perf_link_look(), with the fan-out directory of the link, open at @fanout. */
enum bid_perf_link_state bid_perf_link_look_in(struct bid_store *store, int fanout, const struct bid_id *disk_id,
					       char ret_target[static PATH_MAX]);

/* Does the link of @disk_id, in the fan-out directory open at @fanout, lead to @path? */
bool bid_perf_link_points_to(int fanout, const struct bid_id *disk_id, const char *path);

/*
 * Make the link of @id to the directory @target (relative to the store), unless there is one. Returns 1 if it is new, else 0.
 * Raises @made, which may be NULL, as bid_beneath_mkdirs().
 */
int bid_perf_link_make(struct bid_store *store, const struct bid_id *id, const char *target, unsigned *made);

/* Point the link of @disk_id to @target; atomically replaces another target. */
int bid_perf_link_point(struct bid_store *store, const struct bid_id *disk_id, const char *target);

/* Remove the link of @disk_id if it leads to @target. Returns 0, or -ENOENT for another link. */
int bid_perf_link_remove(struct bid_store *store, const struct bid_id *disk_id, const char *target);

/* Read the target of the link of @disk_id, whatever it leads to. -EINVAL if it is no symbolic link, or one of another form. */
int bid_perf_link_target(struct bid_store *store, const struct bid_id *disk_id, char *ret_path, size_t size);

/* bid_store_perf_link() of one store, without its lower stores. */
int bid_perf_link_find(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size);

#endif
