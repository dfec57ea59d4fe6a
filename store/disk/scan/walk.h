/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A dirwalk by several threads. It opens every directory by its name in its open parent: it never follows symbolic links, and a
 * directory moved meanwhile cannot lead it elsewhere.
 */
#ifndef BID_DISK_WALK_H
#define BID_DISK_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct bid_walk;

/* A regular file, as far as its directory says. */
struct bid_walk_file {
	int dir; /* the open directory of the file */
	const char *dir_path; /* absolute, without a slash at its end: "" is the root */
	const char *name;
	uint64_t note; /* note of the directory */
};

/* Several threads may call all of these at a time; @worker is the number of the thread. */
struct bid_walk_ops {
	/* Enter the directory at @fd with the stat @st? *@note is the note of its parent, and becomes its own. */
	bool (*enter)(void *user, int fd, const struct stat *st, uint64_t *note);
	/* Handle a file. A negative return ends the dirwalk, and is returned. */
	int (*file)(void *user, unsigned worker, const struct bid_walk_file *file);
	/* The directory @path could not be read. */
	void (*trouble)(void *user, unsigned worker, const char *path, int error);
};

/*
 * Prepare a dirwalk below the directory at @fd with the absolute path @path and the note @note. @fd stays the caller's, and must
 * stay open until bid_walk_free().
 */
int bid_walk_new(int fd, const char *path, uint64_t note, const struct bid_walk_ops *ops, void *user, struct bid_walk **ret_walk);

/* Take part as thread @worker until the end. Returns 0, or the error that ended the dirwalk. */
int bid_walk_work(struct bid_walk *walk, unsigned worker);

/* End the dirwalk soon with @error: no thread begins another file. */
void bid_walk_end(struct bid_walk *walk, int error);

/* Free @walk, which may be NULL, after every bid_walk_work() has returned. */
void bid_walk_free(struct bid_walk *walk);

#endif
