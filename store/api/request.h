/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests as keys of hash tables. */
#ifndef BID_API_REQUEST_H
#define BID_API_REQUEST_H

#include <string.h>

#include "api/artifact.h"

static inline bool bid_request_equal(const struct bid_request *a, const struct bid_request *b)
{
	return a->kind == b->kind && bid_id_equal(&a->id, &b->id) && bid_subpath_equal(a->subpath, b->subpath);
}

/*
 * Ids come from readers. A table with many entries uses a random @seed, because a reader could otherwise make long chains on
 * purpose.
 */
static inline uint64_t bid_request_hash(const struct bid_request *request, uint64_t seed)
{
	uint64_t hash = seed ^ ((uint64_t)request->kind << 8 | request->id.len);

	for (size_t i = 0; i < request->id.len; i += sizeof(uint64_t)) {
		size_t left = request->id.len - i;
		uint64_t word = 0;

		memcpy(&word, request->id.bytes + i, left < sizeof(word) ? left : sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	for (const char *at = bid_subpath_text(request->subpath); *at; at++) {
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

#endif
