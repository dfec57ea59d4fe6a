/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decompression of perf's compressed data (record -z): one stream of zstd frames over all records with compressed data. */
#ifndef BID_PERFDATA_INFLATE_H
#define BID_PERFDATA_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Takes whole pieces of the @len bytes at @data. Returns the number of bytes taken, which the next call does not repeat; -EBADMSG
 * for malformed bytes, or another negative errno.
 */
typedef ptrdiff_t (*bid_inflate_fn)(void *user, const uint8_t *data, size_t len);

struct bid_inflate;

int bid_inflate_new(bid_inflate_fn fn, void *user, struct bid_inflate **ret_inflate);

/* @inflate may be NULL. */
void bid_inflate_free(struct bid_inflate *inflate);

/*
 * Decompress, and pass the bytes on. Pieces of up to BID_RECORD_MAX bytes may straddle calls. Returns 0, -EBADMSG for damaged data,
 * -EFBIG for data that grows too much, -ENOMEM, or the result of @fn. No calls after a failure.
 */
int bid_inflate_feed(struct bid_inflate *inflate, const uint8_t *data, size_t len);

/* Return the number of bytes left at the end, an incomplete piece. @inflate may be NULL. */
size_t bid_inflate_left(const struct bid_inflate *inflate);

#endif
