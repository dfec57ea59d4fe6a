/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What perf compressed (record -z): one stream of zstd frames over all records of a file that carry compressed data. */
#ifndef BID_PERFDATA_INFLATE_H
#define BID_PERFDATA_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Takes whole pieces of the @len bytes at @data. Returns how many bytes it took, which the next call will not see again; -EBADMSG
 * if they make no sense, or another negative errno.
 */
typedef ptrdiff_t (*bid_inflate_fn)(void *user, const uint8_t *data, size_t len);

struct bid_inflate;

int bid_inflate_new(bid_inflate_fn fn, void *user, struct bid_inflate **ret_inflate);

/* @inflate may be NULL. */
void bid_inflate_free(struct bid_inflate *inflate);

/*
 * Decompress, and hand on. Pieces of up to BID_RECORD_MAX bytes may straddle calls. Returns 0, -EBADMSG for damaged data, -EFBIG
 * for data that grows beyond all reason, -ENOMEM, or what @fn returned. After a failure, no more.
 */
int bid_inflate_feed(struct bid_inflate *inflate, const uint8_t *data, size_t len);

/* The bytes at the end of which the rest was not there yet. @inflate may be NULL. */
size_t bid_inflate_left(const struct bid_inflate *inflate);

#endif
