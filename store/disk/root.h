/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one door to everything below the store's directory: openat2(2) with RESOLVE_BENEATH and without symbolic links, so that no
 * name in the store, whoever wrote it, leads anywhere else. Paths are relative, without "..".
 */
#ifndef BID_DISK_ROOT_H
#define BID_DISK_ROOT_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

/*
 * openat(2) below @root; O_CLOEXEC and O_NOFOLLOW are added. -ENOENT also where a symbolic link or a non-directory is in the
 * way.
 */
int bid_root_open(int root, const char *path, int flags, int *ret_fd);

/* The same, but symbolic links are followed, below @root and into @dirs as bid_path_open_linked() has it: -EXDEV. */
int bid_root_open_linked(int root, const char *path, int flags, const char *const *dirs, int *ret_fd);

/* opendir(3) below @root. The caller closes @ret_dir. */
int bid_root_opendir(int root, const char *path, DIR **ret_dir);

/* The text of the symbolic link @name in the open directory @dir. As readlinkat(2), -ENAMETOOLONG if it is too long for a path. */
int bid_root_readlink(int dir, const char *name, char ret_text[static PATH_MAX]);

/* lstat(2) below @root. */
int bid_root_stat(int root, const char *path, struct stat *ret_stat);

/* Make the directory @path and its parents, mode 0755, and open it. With @durable the new names are synced to disk. */
int bid_root_mkdirs(int root, const char *path, bool durable, int *ret_fd);

/*
 * Directories that got new names and are to be synced together, after the last of them was given: of several changes that are
 * synced one by one, each waits for the disk. Begin with a zeroed one.
 */
#define BID_TOUCHED_MAX 16

struct bid_touched {
	int dirs[BID_TOUCHED_MAX]; /* owned */
	unsigned n;
};

/* Remember @dir, which stays the caller's. With no room left, those before it are synced now. */
int bid_touched_add(struct bid_touched *touched, int dir);

/* fsync(2) all of them, and forget them whether it works or not. */
int bid_touched_sync(struct bid_touched *touched);

/* Forget them. */
void bid_touched_release(struct bid_touched *touched);

/* bid_root_mkdirs() that leaves the syncing to the caller; @touched may be NULL. */
int bid_root_mkdirs_touching(int root, const char *path, struct bid_touched *touched, int *ret_fd);

/*
 * The same below the open directory @dir for a @path, not empty, of which most likely nothing is there yet. -ENOENT if somebody
 * removed what it is in.
 */
int bid_root_mkdirs_below(int dir, const char *path, struct bid_touched *touched, int *ret_fd);

#endif
