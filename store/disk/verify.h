/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the passes of a check share: objects (verify_objects.c), links (verify_links.c), our own folder (verify_own.c). */
#ifndef BID_DISK_VERIFY_H
#define BID_DISK_VERIFY_H

#include <bid/verify.h>

#include "disk/entries.h"
#include "disk/idset.h"

struct bid_verify {
	struct bid_store *store;
	const struct bid_verify_config *config;
	struct bid_idset wanted; /* of config->ids */
	struct bid_verify_stats stats;
	bool unlinked; /* something went away, in whose place another name of that id may come */
	struct bid_id *orphans; /* ids of names that no link leads to, as they were left; owned */
	size_t n_orphans, orphan_room;
	struct bid_idset orphaned; /* of orphans, once all names were seen */
	bool again; /* the names are walked once more, for that; who is told of already is not told of again */
};

/* Is the id filed as @filed to be checked? */
bool bid_verify_wants(const struct bid_verify *verify, const struct bid_id *filed);

/* Count and tell. The return value is the callback's. */
int bid_verify_found(struct bid_verify *verify, const struct bid_finding *finding);

int bid_verify_progress(struct bid_verify *verify);

/*
 * The object @path, which lies under the id of @request. One that is not right is set aside when repairing. Returns 0 and whether
 * it is right; else what the callback said, or -ENOMEM.
 */
int bid_verify_object(struct bid_verify *verify, const char *path, const struct bid_request *request, bool *ret_right);

/* One name and all that lies under it. */
int bid_verify_entry(struct bid_verify *verify, const struct bid_place_of *entry);

/* Only whether a link leads to the name, for those whose link went away. */
int bid_verify_adopt(struct bid_verify *verify, const struct bid_place_of *entry);

/* All of perf's links. */
int bid_verify_links(struct bid_verify *verify);

/* All of ".bidfs". */
int bid_verify_own(struct bid_verify *verify);

/* Write the record of @request anew from the file itself, open at @fd, of which it says only what that says. */
int bid_verify_rerecord(struct bid_verify *verify, const struct bid_request *request, int fd);

#endif
