/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Artifacts as keys of hash tables, kinds and subpaths, beyond <bid/artifact.h>. */
#ifndef BID_API_ARTIFACT_H
#define BID_API_ARTIFACT_H

#include <stdbool.h>
#include <string.h>

#include <bid/artifact.h>

/* Has @artifact an id and a known kind, and a subpath if and only if the kind needs one? */
bool bid_artifact_valid(const struct bid_artifact *artifact);

/* Copy @artifact with a reference to its subpath. The caller gives the copy back with bid_artifact_release(). */
struct bid_artifact bid_artifact_copy(const struct bid_artifact *artifact);

void bid_artifact_release(struct bid_artifact *artifact);

/* The name of the artifact's file in perf's store: as bid_kind_name(), but "debug". Static. */
const char *bid_kind_store_name(enum bid_kind kind);

/* Find the kind without subpath of the file name @name in perf's store, or BID_KIND_NONE. */
enum bid_kind bid_kind_parse_store_name(const char *name);

/* Can a server have artifacts of this kind, or only the local store? */
bool bid_kind_fetchable(enum bid_kind kind);

/* Is the artifact an ELF file? The store checks its id. */
bool bid_kind_is_elf(enum bid_kind kind);

/* Does an artifact of this kind need a subpath? */
bool bid_kind_has_subpath(enum bid_kind kind);

/*
 * Subpaths: an artifact with a subpath is one of many of its kind. bid_subpath_source() and bid_subpath_section() of
 * <bid/artifact.h> parse a name from outside once, at the edge. A subpath is therefore safe as a path below a directory and,
 * encoded, in a URL.
 */
#define BID_SUBPATH_MAX	  3840 /* bytes; leaves room for the directory in a store */
#define BID_SUBPATH_DEPTH 64 /* components */

/* Take another reference to @subpath, which may be NULL. Returns @subpath. */
const struct bid_subpath *bid_subpath_ref(const struct bid_subpath *subpath);

/* "/usr/src/a.c", ".debug_line"; "" for NULL. Lives as long as @subpath. */
const char *bid_subpath_text(const struct bid_subpath *subpath);

bool bid_subpath_equal(const struct bid_subpath *a, const struct bid_subpath *b);

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
