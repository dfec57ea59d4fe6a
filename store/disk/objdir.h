/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the artifacts of an id lie in one store: what layout.h names, looked at. */
#ifndef BID_DISK_OBJDIR_H
#define BID_DISK_OBJDIR_H

#include <limits.h>
#include <stdbool.h>

#include "api/store.h"
#include "disk/layout.h"

/*
 * The places where an artifact of kind @kind (BID_KIND_NONE: any) of the id filed as @id may lie, in the order to look: where
 * perf's link leads, what was fetched without a name, and perf's directories of the kernel and the vDSO. Begin with a zeroed one;
 * returns false when there are no more.
 */
struct bid_place {
	unsigned step; /* set to 0, the places come again, and the link is not read again */
	bool looked; /* the link was read */
	bool linked; /* there is a link that stays inside the store */
	const char *path; /* relative to the store: a directory, or in perf's old layout a file; points to one of these: */
	char target[PATH_MAX], known[BID_LAYOUT_MAX];
};
bool bid_place_next(struct bid_place *place, struct bid_store *store, const struct bid_id *id, enum bid_kind kind);

/* The directories in which artifacts lie that no link leads to, as "DIR/ID": @number is less than BID_PLACE_KNOWN_MAX. Static. */
enum { BID_PLACE_KNOWN_MAX = 3 };
const char *bid_place_known(unsigned number);

/*
 * Has a lower store the file @alien? An empty one is how libdebuginfod remembers what no server had (debuginfod_find_debuginfo(3),
 * "Cache"), often without the right to read it.
 */
bool bid_alien_is_there(struct bid_store *store, const struct bid_alien *alien);

/* The kinds that a lower store has under @filed in the layouts of others, as a mask of 1 << enum bid_kind. */
int bid_one_alien_kinds(struct bid_store *store, const struct bid_id *filed);

#endif
