/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests as keys of hash tables. */
#ifndef BID_API_REQUEST_H
#define BID_API_REQUEST_H

#include <string.h>

#include "api/artifact.h"

static inline bool bid_artifact_equal(const struct bid_artifact *a, const struct bid_artifact *b)
{
	return a->kind == b->kind && bid_id_equal(&a->id, &b->id) && bid_subpath_equal(a->subpath, b->subpath);
}

/*
 * Ids come from readers. A table with many entries uses a random @seed, because a reader could otherwise make long chains on
 * purpose.
 */
static inline uint64_t bid_artifact_hash(const struct bid_artifact *artifact, uint64_t seed)
{
	uint64_t hash = seed ^ ((uint64_t)artifact->kind << 8 | artifact->id.len);

	for (size_t i = 0; i < artifact->id.len; i += sizeof(uint64_t)) {
		size_t left = artifact->id.len - i;
		uint64_t word = 0;

		memcpy(&word, artifact->id.bytes + i, left < sizeof(word) ? left : sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	for (const char *at = bid_subpath_text(artifact->subpath); *at; at++) {
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

#endif
