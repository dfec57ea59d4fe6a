/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verification of a whole store: each object must match its name, each name must lead to an object, and the private folder must be
 * sound. A repair fixes all faults except those that need the bytes: the broker gets those.
 */
#ifndef BID_API_VERIFY_H
#define BID_API_VERIFY_H

#include "api/store.h"

enum bid_finding_kind {
	BID_FINDING_WRONG = 0, /* an object with another id than its name, or without an id */
	BID_FINDING_CORRUPT, /* an object with the right id whose bytes differ from the record, or are truncated */
	BID_FINDING_UNREADABLE, /* an unreadable object or directory; its state is unknown */
	BID_FINDING_RIGHTS, /* an object with privileges such as setuid: it outlives the update of the original file */
	BID_FINDING_ORPHAN, /* objects under a name without a link */
	BID_FINDING_EMPTY, /* a directory of an id without objects */
	BID_FINDING_DANGLING, /* a link to nothing */
	BID_FINDING_MISMATCHED, /* a link to another id's directory */
	BID_FINDING_FOREIGN_LINK, /* a link of another form than perf's; readers ignore it */
	BID_FINDING_TEMP, /* a temporary file without a writer */
	BID_FINDING_RECORD, /* a record that is damaged or belongs to another file; or a source or section without a record */
	BID_FINDING_STALE, /* a record or an unpacked copy of an absent file */
	BID_FINDING_ALTERED, /* an object that bid_verify_config.compare refused */
	BID_FINDING_COUNT
};

/* "wrong", "corrupt", ... Static. */
const char *bid_finding_name(enum bid_finding_kind kind);

/* A fault. All of it dies when the callback returns. */
struct bid_finding {
	enum bid_finding_kind kind;
	const char *path; /* relative to the store */
	struct bid_artifact artifact; /* the faulty object; kind BID_KIND_NONE for a whole id */
	const char *text; /* in words: "carries the build-id '15df...'" */
	bool repaired; /* repaired, or moved to the quarantine */
	bool name_free; /* the name is free for a download: the object is in ".bidfs/quarantine", the source or section removed */
};

#define BID_VERIFY_TEXT_MAX 256 /* bytes of the text of a finding, with its NUL */

struct bid_verify_stats {
	uint64_t names; /* "<path>/<id>" checked */
	uint64_t objects; /* files in them with an id that were read */
	uint64_t bytes; /* read for digests */
	uint64_t digests; /* compared */
	uint64_t links;
	uint64_t records;
	uint64_t foreign; /* files outside the layout; they stay */
	uint64_t found[BID_FINDING_COUNT];
	uint64_t left; /* findings among these without a repair */
};

struct bid_verify_config {
	bool deep; /* read every byte: compare digests, examine ELF files as a whole */
	bool repair; /* repair; needs a store open for writing */
	unsigned jobs; /* threads; 0 is one per CPU available to this process. A repair always uses one */
	const struct bid_id *ids; /* only of these; NULL: everything */
	size_t n_ids;
	/*
	 * Report a finding, in any thread, one call at a time. A non-zero return ends the check, which then returns this value. May
	 * be NULL.
	 */
	int (*found)(void *user, const struct bid_finding *finding);
	/*
	 * Compare an ELF or debug file that has passed the other checks: @path of @artifact, relative to the store, open at @fd.
	 * Called in any thread, several calls at a time. Returns 0; -EBADMSG for an altered file, with the reason in @ret_text; or
	 * as pread(2). May be NULL.
	 */
	int (*compare)(void *user, const struct bid_artifact *artifact, const char *path, int fd,
		       char ret_text[static BID_VERIFY_TEXT_MAX]);
	/*
	 * Called now and then, from any thread, one at a time and never beside the other. A non-zero return ends the check
	 * likewise. May be NULL.
	 */
	int (*progress)(void *user, const struct bid_verify_stats *stats);
	void *user;
};

/*
 * Verify @store as @config requests. Reads every object anew, without cached results. Other processes may write meanwhile. A repair
 * never destroys an object: it moves a wrong or corrupt one to ".bidfs/quarantine", and replaces one with privileges by a copy
 * without them. It removes a source or section that is corrupt or has a damaged or lost record, because bidfs can get it again. It
 * gives a name without a link this link, or merges the name with the object that has the link. Returns 0 after a complete check,
 * with any findings; -EROFS for a repair on a store open for reading; the result of a callback; or a negative errno if the check
 * could not continue.
 */
int bid_store_verify(struct bid_store *store, const struct bid_verify_config *config, struct bid_verify_stats *ret_stats);

#endif
