/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The object directories of an id in one store, "<path>/ID", that may have its files. objdir.h has one of them. */
#ifndef BID_DISK_ID_DIRS_H
#define BID_DISK_ID_DIRS_H

#include <limits.h>
#include <stdbool.h>

#include "api/store.h"
#include "disk/layout.h"

/*
 * Iterate over the object directories for an artifact of @kind (BID_KIND_NONE: any) of the on-disk id @id, in the order of search:
 * the target of perf's link, [debuginfod], perf's directories of the kernel and the vDSO. Begin with a zeroed struct; returns false
 * after the last.
 */
struct bid_id_dirs {
	unsigned step; /* 0 restarts the iteration without reading the link again */
	bool looked; /* the link was read */
	bool linked; /* a link that stays inside the store exists */
	const char *path; /* relative to the store; points to one of these: */
	char target[PATH_MAX], known[BID_LAYOUT_MAX];
};
bool bid_id_dirs_next(struct bid_id_dirs *dirs, struct bid_store *store, const struct bid_id *id, enum bid_kind kind);

/* The well-known directories of artifacts without a link, "DIR/ID": @number is less than BID_ID_DIRS_KNOWN_MAX. Static. */
enum { BID_ID_DIRS_KNOWN_MAX = 3 };
const char *bid_id_dirs_known(unsigned number);

#endif
