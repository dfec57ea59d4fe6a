/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Paths below one directory that are watched, as a tree of their parts: a directory is watched once, for all the paths through
 * it. A path need not exist: then the directory that it would be in is watched. Not for several threads at once.
 */
#ifndef BID_DISK_WATCH_PATHS_H
#define BID_DISK_WATCH_PATHS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/stamp.h"

struct bid_paths;
struct bid_part;

/* Somebody's interest in one path or file. Made and freed here. */
struct bid_hold {
	struct bid_part *node;
	void *holder; /* borrowed */
	struct bid_hold *next, **at; /* among those of the node */
	struct bid_hold *other; /* the next one of the same holder */
	uint64_t since; /* the holder's */
};

/* @root is borrowed. As inotify_init1(2). */
int bid_paths_new(int root, struct bid_paths **ret_paths);

/* There are no more events: all watches are given up at once, which one by one takes long. */
void bid_paths_end(struct bid_paths *paths);

/* After all was let go. @paths may be NULL. */
void bid_paths_free(struct bid_paths *paths);

/* To read struct inotify_event from; lives as long as @paths. Does not block. */
int bid_paths_fd(const struct bid_paths *paths);

/*
 * Watch @path: that each part of it stays what it is, and if it is a directory, the names in it. It is put before *@holds. Returns
 * 0, -EINVAL if it is not made of plain names, -EXDEV if it leads to another file system, -ENOMEM, or as open(2),
 * inotify_add_watch(2). @ret_dir (may be NULL) is the directory, opened with O_PATH and the caller's, if it was not watched before.
 */
int bid_paths_hold(struct bid_paths *paths, const char *path, void *holder, struct bid_hold **holds, int *ret_dir);

/* The same of what is no directory, as far as the caller knows: nobody looks. */
int bid_paths_hold_name(struct bid_paths *paths, const char *path, void *holder, struct bid_hold **holds);

/* Watch the regular file open at @fd, by whatever name it is changed. */
int bid_paths_hold_file(struct bid_paths *paths, int fd, void *holder, struct bid_hold **holds);

/* Is the file with the attributes @st one of @holds, and was so at @mark? */
bool bid_holds_file(const struct bid_hold *holds, const struct stat *st, uint64_t mark);

/* Is the directory @path, which exists, one of @holds? */
bool bid_holds_dir(const struct bid_hold *holds, const char *path);

/* One who has bid_paths_hold() of just the directory @path, which is there; NULL if nobody has. */
void *bid_paths_holder(const struct bid_paths *paths, const char *path);

/* Let go of all of *@holds. */
void bid_paths_let_go(struct bid_paths *paths, struct bid_hold **holds);

/*
 * If @event says no more than that a file was closed by somebody who could write to it: one of the file's holders, and the stamp of
 * it from before it was watched, which lives as long as it is held. Else NULL.
 */
void *bid_paths_closed(const struct bid_paths *paths, const struct inotify_event *event, const struct bid_stamp **ret_stamp);

/*
 * Call @fn for each holder of what @event is about. It lets go of all of the holder's. With IN_Q_OVERFLOW, which concerns all, it
 * is not called.
 */
void bid_paths_event(struct bid_paths *paths, const struct inotify_event *event, void (*fn)(void *user, void *holder), void *user);

#endif
