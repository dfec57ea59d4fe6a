/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Artifacts that are made of others, where the store cannot keep them: files in memory, which live as long as they are open. All
 * that this process has open are limited together, by BID_LIMIT_MEMORY.
 */
#ifndef BID_DISK_MEMORY_H
#define BID_DISK_MEMORY_H

#include <stdint.h>

/* A file in memory of @size bytes, which are 0. -ENOMEM if there is no room for it, or as memfd_create(2). */
int bid_memory_new(const char *name, uint64_t size, int *ret_fd);

/* How large one may be now. 0 or a negative errno. May take a few milliseconds. */
int bid_memory_left(uint64_t *ret_left);

#endif
