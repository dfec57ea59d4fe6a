/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A walk through a directory tree by several threads. Every directory is opened by its name in its parent, which is open: symbolic
 * links are never followed, and a directory that is moved meanwhile leads nowhere else.
 */
#ifndef BID_DISK_WALK_H
#define BID_DISK_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct bid_walk;

/* A regular file, as far as its directory says. */
struct bid_walk_file {
	int dir; /* the open directory it is in */
	const char *dir_path; /* absolute, without a slash at its end: "" is the root */
	const char *name;
	uint64_t note; /* of the directory */
};

/* All of them may be called by several threads at a time; @worker is the number of the thread. */
struct bid_walk_ops {
	/*
	 * Is the directory open at @fd, of which @st is the stat, to be walked? @note is that of the directory that it is in, and
	 * to become its own.
	 */
	bool (*enter)(void *user, int fd, const struct stat *st, uint64_t *note);
	/* A negative return ends the walk with that. */
	int (*file)(void *user, unsigned worker, const struct bid_walk_file *file);
	/* The directory @path could not be read. */
	void (*trouble)(void *user, unsigned worker, const char *path, int error);
};

/*
 * A walk through what is below the directory open at @fd, whose absolute path is @path, and whose note @note; @fd stays the
 * caller's, and must not be closed before the walk is freed.
 */
int bid_walk_new(int fd, const char *path, uint64_t note, const struct bid_walk_ops *ops, void *user, struct bid_walk **ret_walk);

/* Take part in it as thread @worker, until it is over. Returns 0, or what ended it. */
int bid_walk_work(struct bid_walk *walk, unsigned worker);

/* End it soon with @error: no thread begins another file. */
void bid_walk_end(struct bid_walk *walk, int error);

/* After every bid_walk_work() has returned. @walk may be NULL. */
void bid_walk_free(struct bid_walk *walk);

#endif
