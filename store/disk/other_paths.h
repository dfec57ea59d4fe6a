/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Further paths of a build. perf's link leads from an id to one path. The private folder lists the other paths (docs/FORMAT.md), so
 * that finding them needs no dirwalk.
 */
#ifndef BID_DISK_OTHER_PATHS_H
#define BID_DISK_OTHER_PATHS_H

#include <stdbool.h>

#include "api/store.h"

/* Add @path, "usr/bin/ls/ID", to the paths of @id, with the present target of perf's link. */
int bid_other_paths_note(struct bid_store *store, const struct bid_id *id, const char *path);

/*
 * Call @fn for each listed path of @id that exists. A non-zero return ends the enumeration and is returned. The callback may remove
 * the path.
 */
int bid_other_paths_each(struct bid_store *store, const struct bid_id *id, int (*fn)(void *user, const char *path), void *user);

/* Take the paths of @id off the list: those that no longer exist, or with @all every one. Returns 0 or a negative errno. */
int bid_other_paths_forget(struct bid_store *store, const struct bid_id *id, bool all);

#endif
