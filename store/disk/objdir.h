/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The object directories of an id in one store, "<path>/ID", where its files are: perf's link (perf_link.h) leads to one of them.
 */
#ifndef BID_DISK_OBJDIR_H
#define BID_DISK_OBJDIR_H

#include <limits.h>
#include <stdbool.h>

#include "api/store.h"
#include "disk/layout.h"

/*
 * Iterate over the object directories for an artifact of @kind (BID_KIND_NONE: any) of the on-disk id @id, in the order of search:
 * the target of perf's link, [debuginfod], perf's directories of the kernel and the vDSO. Begin with a zeroed struct; returns false
 * after the last.
 */
struct bid_objdir_iter {
	unsigned step; /* 0 restarts the iteration without reading the link again */
	bool looked; /* the link was read */
	bool linked; /* a link that stays inside the store exists */
	const char *path; /* relative to the store; points to one of these: */
	char target[PATH_MAX], known[BID_LAYOUT_MAX];
};
bool bid_objdir_next(struct bid_objdir_iter *objdir, struct bid_store *store, const struct bid_id *id, enum bid_kind kind);

/* The well-known directories of artifacts without a link, "DIR/ID": @number is less than BID_OBJDIR_KNOWN_MAX. Static. */
enum { BID_OBJDIR_KNOWN_MAX = 3 };
const char *bid_objdir_known(unsigned number);

/* The kinds of the files in the object directory @path, as a mask of 1 << enum bid_kind. */
int bid_objdir_kinds(struct bid_store *store, const char *path);

/*
 * Does the lower store have the file @foreign, and may it be served? An empty file is a negative cache entry of libdebuginfod
 * (debuginfod_find_debuginfo(3), "Cache"), often unreadable. No download of libdebuginfod has a record with a signer.
 */
bool bid_foreign_is_there(struct bid_store *store, const struct bid_foreign *foreign);

/* The kinds of @disk_id in the foreign layouts of a lower store, as a mask of 1 << enum bid_kind. */
int bid_foreign_kinds(struct bid_store *store, const struct bid_id *disk_id);

/*
 * Remove the artifacts of @kinds from @path; after the last artifact, also an empty probe cache, the directory and its empty
 * parents. Files outside of the layout stay, and keep the directory. Returns the mask of the remaining kinds, or a negative errno.
 */
int bid_objdir_remove(struct bid_store *store, const char *path, unsigned kinds);

/* Remove the link to the empty directory @path. The link stays if another process filled the directory meanwhile. */
void bid_objdir_drop_link(struct bid_store *store, const struct bid_id *disk_id, const char *path);

#endif
