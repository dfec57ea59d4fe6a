/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Derived artifacts that the store cannot keep: files in memory, which live while they are open. BID_LIMIT_MEMORY bounds the sum of
 * all such files open in this process.
 */
#ifndef BID_DISK_MEMORY_H
#define BID_DISK_MEMORY_H

#include <stdint.h>

/* Make a file in memory with @size zero bytes. Returns -ENOMEM without room for it, or as memfd_create(2). */
int bid_memory_new(uint64_t size, int *ret_fd);

/* How large one may be now. 0 or a negative errno. May take a few milliseconds. */
int bid_memory_left(uint64_t *ret_left);

#endif
