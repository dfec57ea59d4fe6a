/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who gets to a directory, as a number: 0 is everybody, and any other stands for what keeps others out. It is another one after the
 * rights of a directory on the way were changed, by which a scan knows that the readers of what is in it may be others.
 */
#ifndef BID_DISK_WAY_H
#define BID_DISK_WAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* That of the directory open at @fd, of which @st is the stat, from that of the directory that it is in. */
uint64_t bid_way_through(uint64_t above, int fd, const struct stat *st);

/* That of the directory @path, an absolute one. May block on what is mounted there. */
uint64_t bid_way_to(const char *path);

#endif
