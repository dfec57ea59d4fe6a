/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Paths of open files, by /proc (proc_pid_fd(5)), through permitted links, and in mounts of bidfs; the form of a path. */
#ifndef BID_BASE_PATH_H
#define BID_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define BID_FD_PATH_MAX 32

/* A path that opens the file of @fd again, even if its name is gone or names another file. Returns @buf. */
const char *bid_fd_path(int fd, char buf[static BID_FD_PATH_MAX]);

/* linkat(2) of the file open at @fd, as @name in @dir. Returns 0 or a negative errno. */
int bid_fd_link(int fd, int dir, const char *name);

/*
 * The path of the file open at @fd, as the kernel reports it: with a mark at its end for a deleted file. A file without a file
 * system has a text that is no path. Returns 0, -ENAMETOOLONG, or as readlink(2).
 */
int bid_path_of(int fd, char *ret_path, size_t size);

/*
 * openat(2) of @name below @root, with links that may lead into one of @dirs, absolute real paths in a NULL-terminated array; or
 * back below @root. -EXDEV if @name leads elsewhere, or if @dirs is NULL.
 */
int bid_path_open_linked(int root, const char *name, int flags, const char *const *dirs);

/*
 * Append the real paths of the directories in @value, with ':' between them, to *@dirs, as bid_strings_append().
 * Returns 0, or -EINVAL after an error message with @option as its subject.
 */
int bid_path_append_real(char ***dirs, const char *option, const char *value);

/* Take the mark of a file that was deleted from the end of @path. Returns whether there was one. */
bool bid_path_strip_deleted(char *path);

/* Is @path relative, without a component that is empty, "." or ".."? Two such paths of one name are the same text. */
bool bid_path_is_plain(const char *path);

/* Is @path not a store, but a mount of bidfs, perhaps over the store itself? Blocks as long as its daemon does. */
bool bid_is_mount(const char *path);

/* Is the file open at @fd, with @st, in a mount of bidfs in this namespace? Reads the table of mounts for any file on FUSE. */
bool bid_is_in_mount(int fd, const struct stat *st);

#endif
