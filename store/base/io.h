/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whole reads and writes. They return a negative errno on failure, and retry on EINTR. */
#ifndef BID_BASE_IO_H
#define BID_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/*
 * Read @least bytes at @offset, and more, up to @room, if one read gets them too. Returns how many there were before the end of the
 * file.
 */
ssize_t bid_pread_least(int fd, void *buffer, size_t least, size_t room, off_t offset);

/* Read up to @len bytes at @offset. Returns how many there were before the end of the file. */
static inline ssize_t bid_pread_full(int fd, void *buffer, size_t len, off_t offset)
{
	return bid_pread_least(fd, buffer, len, len, offset);
}

/* Write all of @len bytes at @offset. Returns 0. */
int bid_pwrite_full(int fd, const void *buffer, size_t len, off_t offset);

/*
 * Copy all of @from, from its beginning, to @to, which is empty; by the file systems themselves where they can. Holes stay holes.
 * Moves the offset of @from.
 */
int bid_copy_file(int from, int to);

/*
 * Copy at most @len bytes of @from at @offset to @to_offset of @to, which has zeros there and its final size. Holes stay
 * holes. May move the offset of @from.
 */
int bid_copy_range(int from, off_t offset, uint64_t len, int to, off_t to_offset);

/* Compare the bytes of two files, whose offsets it may move. Returns 1 if they are equal, else 0, or a negative errno. */
int bid_same_bytes(int one, int other);

/* Return the offset of the next data at or behind @at of the file of @size bytes, or @size; or @at without a report of holes. */
off_t bid_next_data(int fd, off_t at, off_t size);

/* Read the whole file, of @max bytes at most (-EFBIG above), into memory with a NUL behind it. The caller frees @ret_data. */
int bid_read_file(int fd, size_t max, char **ret_data, size_t *ret_len);

/*
 * Write the bytes of @fd back, and wait for that. A name that the file gets afterwards is not on disk before the bytes, so that a
 * crash leaves the whole file or none. Unlike fsync(2), this waits for no journal and no flush of the disk.
 */
int bid_write_back(int fd);

/*
 * Does the kernel refuse a lease of the file at @fd, because another file description has it open: for writing (F_RDLCK) or at all
 * (F_WRLCK)? False where the kernel grants no leases (fcntl(2), F_SETLEASE).
 */
bool bid_lease_refused(int fd, int type);

/* Set the times of the regular file @name in @dir, as futimens(3) does. */
int bid_touch(int dir, const char *name, const struct timespec times[2]);

#endif
