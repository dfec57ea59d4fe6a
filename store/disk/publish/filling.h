/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the bytes of a transaction get into its temporary file. They come in small pieces, libcurl's are of 16 KiB; a file system
 * takes large ones with much less work. And they are told to go to the disk while more of them come, so that the fsync in the end,
 * which somebody waits for, is a short one.
 */
#ifndef BID_DISK_FILLING_H
#define BID_DISK_FILLING_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

struct bid_filling {
	int fd; /* borrowed */
	XXH3_state_t *digest; /* of what is in the file; owned */
	uint8_t *buffer; /* what is not in the file yet; owned, NULL before the first byte */
	size_t held; /* bytes in it */
	uint64_t written; /* bytes in the file */
	uint64_t pushed; /* of them those that are on their way to the disk */
};

/* Fill the empty file @fd. Returns 0 or -ENOMEM; released in either case. */
int bid_filling_init(struct bid_filling *filling, int fd);

void bid_filling_release(struct bid_filling *filling);

/*
 * Take some of @len bytes. Returns 0 and how many were taken, or a negative errno: none of them, and it may be called again. Short
 * writes to the disk.
 */
int bid_filling_take(struct bid_filling *filling, const void *data, size_t len, size_t *ret_taken);

/* Let all that was taken be in the file. May be called again if it fails. */
int bid_filling_flush(struct bid_filling *filling);

/* Let the kernel begin to bring to the disk what is in the file, for an fsync that is near. */
void bid_filling_push(struct bid_filling *filling);

/* Begin anew, with an empty file. Returns 0 or as ftruncate(2). */
int bid_filling_reset(struct bid_filling *filling);

/* Bytes taken. */
uint64_t bid_filling_size(const struct bid_filling *filling);

#endif
