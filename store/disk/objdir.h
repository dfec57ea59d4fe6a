/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One object directory, "<path>/ID": perf's link (perf_link.h) leads to one of an id. id_dirs.h has all of an id. */
#ifndef BID_DISK_OBJDIR_H
#define BID_DISK_OBJDIR_H

#include "api/store.h"

/* The kinds of the files in the object directory @path, as a mask of 1 << enum bid_kind. */
int bid_objdir_kinds(struct bid_store *store, const char *path);

/*
 * Remove the artifacts of @kinds from @path; after the last artifact, also an empty probe cache, the directory and its empty
 * parents. Files outside of the layout stay, and keep the directory. Returns the mask of the remaining kinds, or a negative errno.
 */
int bid_objdir_remove(struct bid_store *store, const char *path, unsigned kinds);

/* Remove the link to the empty directory @path. The link stays if another process filled the directory meanwhile. */
void bid_objdir_remove_link(struct bid_store *store, const struct bid_id *disk_id, const char *path);

#endif
