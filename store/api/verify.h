/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checking a whole store: is every object what the name it lies under says, does every name lead somewhere, and is our own part of
 * it sound? With repair, what is wrong is put right as far as that can be done without the bytes: those come from the broker.
 */
#ifndef BID_API_VERIFY_H
#define BID_API_VERIFY_H

#include "api/store.h"

enum bid_finding_kind {
	BID_FINDING_WRONG = 0, /* an object with another id than the one it lies under, or with none */
	BID_FINDING_CORRUPT, /* an object with the right id whose bytes are not those that were recorded, or that is cut short */
	BID_FINDING_UNREADABLE, /* an object or directory that could not be read, so that nothing is known of it */
	BID_FINDING_RIGHTS, /* an object that gives rights to whoever runs it: it outlives the file that was replaced for that */
	BID_FINDING_ORPHAN, /* objects under a name to which no link leads */
	BID_FINDING_EMPTY, /* a directory of an id without objects */
	BID_FINDING_DANGLING, /* a link to nothing */
	BID_FINDING_MISMATCHED, /* a link to another id's directory */
	BID_FINDING_FOREIGN_LINK, /* a link of another form than perf's, which is not followed */
	BID_FINDING_TEMP, /* a temporary file that nobody writes */
	BID_FINDING_RECORD, /* a record that is damaged, or is of another file; or a source or section that has none */
	BID_FINDING_STALE, /* a record, or an unpacked copy, of what is not there */
	BID_FINDING_COUNT
};

/* "wrong", "corrupt", ... Static. */
const char *bid_finding_name(enum bid_finding_kind kind);

/* One thing that is not as it should be. All of it dies when the callback returns. */
struct bid_finding {
	enum bid_finding_kind kind;
	const char *path; /* relative to the store */
	struct bid_request request; /* of the object that is concerned; its kind is BID_KIND_NONE for all of an id */
	const char *text; /* in words: "carries the build-id '15df...'" */
	bool repaired; /* it was put right, or set aside */
	bool vacated; /* its place is free for one that is fetched: an object is in ".bidfs/quarantine", a source or section gone */
};

struct bid_verify_stats {
	uint64_t names; /* "<path>/<id>" that were looked at */
	uint64_t objects; /* files in them that carry an id, and were read */
	uint64_t bytes; /* read for digests */
	uint64_t digests; /* compared */
	uint64_t links;
	uint64_t records;
	uint64_t foreign; /* files that are not of the layout: left alone */
	uint64_t found[BID_FINDING_COUNT];
	uint64_t left; /* of these, what was not repaired */
};

struct bid_verify_config {
	bool deep; /* read every byte: compare digests, examine ELF files as a whole */
	bool repair; /* needs a store that is open for writing */
	unsigned jobs; /* threads; 0 is one per CPU that this process may use. One, whatever is said here, if it repairs */
	const struct bid_id *ids; /* only of these; NULL: everything */
	size_t n_ids;
	/*
	 * Called for each finding, from any thread, one at a time. A non-zero return ends the check, which then returns that value.
	 * May be NULL.
	 */
	int (*found)(void *user, const struct bid_finding *finding);
	/*
	 * Called now and then, from any thread, one at a time and never beside the other. A non-zero return ends the check
	 * likewise. May be NULL.
	 */
	int (*progress)(void *user, const struct bid_verify_stats *stats);
	void *user;
};

/*
 * Check @store as @config says. Reads every object anew, whatever was found of it before. Others may write meanwhile. Repairing
 * never destroys an object: a wrong or corrupt one is moved to ".bidfs/quarantine", and one that gives rights makes way for a copy
 * that does not. A source or section that is corrupt, or whose record is damaged or lost, is removed: it can be had again. A name
 * that has no link gets it, or is one name more of the object that has. Returns 0 if the store was looked at as a whole, whatever
 * was found; -EROFS for repair on a store that is open for reading; what a callback returned; or a negative errno if the check
 * could not go on.
 */
int bid_store_verify(struct bid_store *store, const struct bid_verify_config *config, struct bid_verify_stats *ret_stats);

#endif
