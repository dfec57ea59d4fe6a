/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of other layouts in a lower store: a debuggers' tree, and the cache of libdebuginfod. */
#ifndef BID_DISK_FOREIGN_LAYOUT_H
#define BID_DISK_FOREIGN_LAYOUT_H

#include "api/store.h"
#include "disk/layout.h"

/*
 * The files of an id in foreign layouts of lower stores: trees of debug files (.build-id/xx/rest.debug) and libdebuginfod's cache
 * (ID/debuginfo). As bid_id_dirs_next(); @kind BID_KIND_NONE gives all, with the kind of each in foreign->kind.
 */
struct bid_foreign {
	unsigned step;
	enum bid_kind kind;
	bool is_download; /* in libdebuginfod's cache */
	char path[BID_LAYOUT_MAX];
};
bool bid_foreign_next(struct bid_foreign *foreign, const struct bid_id *id, enum bid_kind kind);

/*
 * Does the lower store have the file @foreign, and may it be served? An empty file is a negative cache entry of libdebuginfod
 * (debuginfod_find_debuginfo(3), "Cache"), often unreadable. No download of libdebuginfod has a record with a signer.
 */
bool bid_foreign_is_there(struct bid_store *store, const struct bid_foreign *foreign);

/* The kinds of @disk_id in the foreign layouts of a lower store, as a mask of 1 << enum bid_kind. */
int bid_foreign_kinds(struct bid_store *store, const struct bid_id *disk_id);

#endif
