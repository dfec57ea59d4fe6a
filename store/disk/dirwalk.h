/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A dirwalk by one thread or by several threads:
 *
 *   bid_dirwalk_new()
 *     bid_dirwalk_work()	in each thread
 *   bid_dirwalk_free()
 *
 * It opens every directory by its name in its open parent: it never follows symbolic links, and a directory moved meanwhile cannot
 * lead it elsewhere. It holds few names in memory: of each directory on the way, those that one system call reads.
 */
#ifndef BID_DISK_DIRWALK_H
#define BID_DISK_DIRWALK_H

#include <stdbool.h>
#include <stdint.h>

struct bid_dirwalk;

/* anything but a directory, as far as its directory says */
struct bid_dirwalk_file {
	int dir; /* the open directory of the file */
	const char *dir_path; /* without a slash at its end: "" is the root */
	const char *name;
	unsigned type; /* DT_REG and its like */
	uint64_t note; /* note of the directory */
};

/*
 * The callbacks of a dirwalk; @user is that of the calling thread. A non-zero return ends the dirwalk and is returned. A callback
 * may remove its subject.
 */
struct bid_dirwalk_ops {
	/* Set @ret_enter to enter the directory @path, open at @fd. @note is the note of its parent, and becomes its own. */
	int (*enter)(void *user, const char *path, int fd, uint64_t *note, bool *ret_enter);
	int (*file)(void *user, const struct bid_dirwalk_file *file);
	/* The directory @path could not be read, or has too long a path (-ENAMETOOLONG). */
	int (*error)(void *user, const char *path, int error);
};

/* Prepare a dirwalk below the directory at @fd with the path @path and the note @note. Takes over @fd, also on -ENOMEM. */
int bid_dirwalk_new(int fd, const char *path, uint64_t note, const struct bid_dirwalk_ops *ops, struct bid_dirwalk **ret_walk);

/* Take part until the end. Returns 0 or the result that ended the dirwalk, the same in all threads. */
int bid_dirwalk_work(struct bid_dirwalk *walk, void *user);

/* End the dirwalk soon with @result: no thread begins another file. */
void bid_dirwalk_end(struct bid_dirwalk *walk, int result);

/* Free @walk, which may be NULL, after every bid_dirwalk_work() has returned. */
void bid_dirwalk_free(struct bid_dirwalk *walk);

/*
 * All of the above in the calling thread, below the directory @path of @root. The paths of the callbacks begin behind @path.
 * Returns as bid_dirwalk_work(); 0 without such a directory.
 */
int bid_dirwalk_each(int root, const char *path, const struct bid_dirwalk_ops *ops, void *user);

#endif
