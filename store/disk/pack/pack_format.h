/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What who reads packs and who writes them share: how a pack begins. All numbers are in the byte order of the machine. */
#ifndef BID_DISK_PACK_FORMAT_H
#define BID_DISK_PACK_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "disk/pack/pack.h"

#define BID_PACK_MAGIC	 "bidpack"
#define BID_PACK_VERSION 1
#define BID_PACK_ORDER	 UINT32_C(0x01020304)

/* On disk: this, then the index, then the texts. */
struct bid_pack_header {
	char magic[8];
	uint32_t version;
	uint32_t order;
	uint64_t n; /* entries of the index */
	uint64_t size; /* bytes of the file */
	uint64_t index_sum;
	uint64_t sum; /* of all before it */
};

static inline uint64_t bid_pack_header_sum(const struct bid_pack_header *header)
{
	return XXH3_64bits(header, offsetof(struct bid_pack_header, sum));
}

enum { BID_PACK_BLOCK = 1024 }; /* entries: the index is read, written and summed up in these */

/* Of @n entries, a block or what is left; @sum is that of those before, or 0. */
static inline uint64_t bid_pack_index_sum(const struct bid_pack_entry *entries, size_t n, uint64_t sum)
{
	return XXH3_64bits_withSeed(entries, n * sizeof(*entries), sum);
}

/* May a text be there? pread(2) fails where offset and length go beyond what off_t holds, instead of finding the end. */
static inline bool bid_pack_may_be_at(uint64_t offset, uint32_t len)
{
	return len <= BID_PACK_TEXT_MAX && offset < UINT64_C(1) << 62;
}

/* @n entries of the index from the @at-th on. Returns 0, -EBADMSG if there are not so many, or as pread(2). */
int bid_pack_read_entries(const struct bid_pack *pack, uint64_t at, size_t n, struct bid_pack_entry *entries);

/* The order of the index. */
static inline int bid_pack_compare(const struct bid_pack_key *one, const struct bid_pack_key *other)
{
	if (one->high != other->high)
		return one->high < other->high ? -1 : 1;
	return (one->low > other->low) - (one->low < other->low);
}

#endif
