/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Open files beneath the store's directory: openat2(2) with RESOLVE_BENEATH and without symbolic links, so that no name in the
 * store leads out of it. All access to the store goes through this file. Paths are relative, without "..".
 */
#ifndef BID_DISK_BENEATH_H
#define BID_DISK_BENEATH_H

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

/*
 * openat(2) beneath @root with O_CLOEXEC and O_NOFOLLOW. -ENOENT also if a component of @path is a symbolic link or no directory.
 */
int bid_beneath_open(int root, const char *path, int flags, int *ret_fd);

/* As bid_beneath_open(), but follow symbolic links, beneath @root and into @dirs; others are -EXDEV (bid_path_open_linked()). */
int bid_beneath_open_linked(int root, const char *path, int flags, const char *const *dirs, int *ret_fd);

/*
 * Open the directory of @path with @flags, O_PATH or O_RDONLY; with O_CREAT, create missing directories as bid_beneath_mkdirs().
 * @ret_name is the last component of @path.
 */
int bid_beneath_parent(int root, const char *path, int flags, int *ret_dir, const char **ret_name);

/* opendir(3) below @root. The caller closes @ret_dir. */
int bid_beneath_opendir(int root, const char *path, DIR **ret_dir);

/* The text of the symbolic link @name in the open directory @dir. As readlinkat(2), -ENAMETOOLONG if it is too long for a path. */
int bid_beneath_readlink(int dir, const char *name, char ret_text[static PATH_MAX]);

/* lstat(2) below @root. */
int bid_beneath_stat(int root, const char *path, struct stat *ret_stat);

/*
 * Make the directory @path and its parents, mode 0755, and open it. Raises @made, which may be NULL, to the number of new
 * directories, which are the last ones of @path.
 */
int bid_beneath_mkdirs(int root, const char *path, unsigned *made, int *ret_fd);

/*
 * fsync(2) the directory @path and as many directories @above it, deepest first: after a power cut a durable name leads to a
 * durable directory. A directory removed meanwhile is no error.
 */
int bid_beneath_sync(int root, const char *path, unsigned above);

/* unlink(2) below @root. */
int bid_beneath_unlink(int root, const char *path);

/* rmdir(2) below @root. */
int bid_beneath_rmdir(int root, const char *path);

/* Remove the directory @path, and its parents, as long as they are empty. */
void bid_beneath_prune(int root, const char *path);

/* Remove the parents of @path as long as they are empty. */
void bid_beneath_prune_above(int root, const char *path);

#endif
