/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The digest of a stored file: XXH3-128, as text. It guards against rot, not against an attacker who owns the store. */
#ifndef BID_DISK_DIGEST_H
#define BID_DISK_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#define BID_DIGEST_PREFIX "xxh3-128:"
#define BID_DIGEST_MAX	  48 /* bytes of the text, with its end */

void bid_digest_format(XXH128_hash_t hash, char ret_text[static BID_DIGEST_MAX]);

/* Is @text a digest of this form? */
bool bid_digest_valid(const char *text);

enum { BID_DIGEST_PIECE = 1 << 20 }; /* bytes that are read at a time */

/*
 * Of the whole file open at @fd. @tick, if not NULL, is called with the number of bytes for each piece that was read, and ends it
 * with a non-zero return, which is returned. Returns 0 or as read(2).
 */
int bid_digest_file(int fd, int (*tick)(void *user, uint64_t bytes), void *user, char ret_text[static BID_DIGEST_MAX]);

/*
 * The same for whoever has read the beginning of it already: the first @len bytes, in the room of BID_DIGEST_PIECE bytes at @piece.
 * Only if they fill it there is more, which is read into the same room.
 */
int bid_digest_rest(int fd, char *piece, size_t len, int (*tick)(void *user, uint64_t bytes), void *user,
		    char ret_text[static BID_DIGEST_MAX]);

#endif
