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

enum { BID_DIGEST_BUFFER = 1 << 20 }; /* bytes of one read */

/* Write the digest of the whole file open at @fd to @ret_text. Returns 0 or as read(2). */
int bid_digest_file(int fd, char ret_text[static BID_DIGEST_MAX]);

/*
 * As bid_digest_file(), for a caller with the first @len bytes of the file in @buffer, a buffer of BID_DIGEST_BUFFER bytes. Only a
 * full buffer means that the file has more; the function reads the rest into the same buffer. Calls @tick, if not NULL, with the
 * number of bytes of each buffer; a non-zero return ends the reading and is returned.
 */
int bid_digest_rest(int fd, char *buffer, size_t len, int (*tick)(void *user, uint64_t bytes), void *user,
		    char ret_text[static BID_DIGEST_MAX]);

#endif
