/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's own words for what is open, in /proc: proc_pid_fd(5). */
#ifndef BID_BASE_PATH_H
#define BID_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The path that the file open at @fd has, as the kernel tells it: with a mark at its end if it was deleted, and of what is in no
 * file system a text that is no path. Returns 0, -ENAMETOOLONG, or as readlink(2).
 */
int bid_path_of(int fd, char *ret_path, size_t size);

/* Take the mark of a file that was deleted from the end of @path. Returns whether there was one. */
bool bid_path_strip_deleted(char *path);

#endif
