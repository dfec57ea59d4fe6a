/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The places of the files of an id in one store, by the names of layout.h: object directories (bid_objdir_next()), perf's link to
 * one of them (bid_link_look()), and the list of further paths (bid_names_each()).
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

/* bid_store_where() of one store, without its lower stores. */
int bid_one_where(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size);

/* The kinds of the files in the object directory @path, as a mask of 1 << enum bid_kind. */
int bid_objdir_kinds(struct bid_store *store, const char *path);

/*
 * Does the lower store have the file @foreign, and may it be served? An empty file is a negative cache entry of libdebuginfod
 * (debuginfod_find_debuginfo(3), "Cache"), often unreadable. No download of libdebuginfod has a record with a signer.
 */
bool bid_foreign_is_there(struct bid_store *store, const struct bid_foreign *foreign);

/* The kinds of @disk_id in the foreign layouts of a lower store, as a mask of 1 << enum bid_kind. */
int bid_one_foreign_kinds(struct bid_store *store, const struct bid_id *disk_id);

/*
 * Remove the artifacts of @kinds from @path; after the last artifact, also an empty probe cache, the directory and its empty
 * parents. Files outside of the layout stay, and keep the directory. Returns the mask of the remaining kinds, or a negative errno.
 */
int bid_objdir_take(struct bid_store *store, const char *path, unsigned kinds);

/* perf's link of an id, ".build-id/xx/rest": read, change and remove it while other processes use it. */

/* The state of perf's link for an id. */
enum bid_link_state {
	BID_LINK_NONE = 0, /* nothing */
	BID_LINK_GOOD, /* a link to "<path>/<id>"; the target exists, or is unreadable */
	BID_LINK_DANGLING, /* a link of that form without a target */
	BID_LINK_MISMATCHED, /* a link to the directory of another id, or of none */
	BID_LINK_FOREIGN, /* a link of another form, never followed */
	BID_LINK_ODD, /* something else: a file, a directory */
};

/* Read the link of the on-disk id @disk_id. Sets @ret_target with GOOD, DANGLING and MISMATCHED. */
enum bid_link_state bid_link_look(struct bid_store *store, const struct bid_id *disk_id, char ret_target[static PATH_MAX]);

/* As bid_link_look(), with the fan-out directory of the link, open at @fanout. */
enum bid_link_state bid_link_look_in(struct bid_store *store, int fanout, const struct bid_id *disk_id,
				     char ret_target[static PATH_MAX]);

/* Does the link of @disk_id, in the fan-out directory open at @fanout, lead to @path? */
bool bid_link_leads(int fanout, const struct bid_id *disk_id, const char *path);

/* Point the link of @disk_id to @target; atomically replaces another target. */
int bid_link_point(struct bid_store *store, const struct bid_id *disk_id, const char *target);

/* Remove the link of @disk_id if it leads to @target. Returns 0, or -ENOENT for another link. */
int bid_link_drop(struct bid_store *store, const struct bid_id *disk_id, const char *target);

/* Remove the link to the empty directory @path. The link stays if another process filled the directory meanwhile. */
void bid_link_leave(struct bid_store *store, const struct bid_id *disk_id, const char *path);

/*
 * Further paths of a build. perf's link leads from an id to one path. The private folder lists the other paths (docs/FORMAT.md), so
 * that finding them needs no dirwalk.
 */

/* Add @path, "usr/bin/ls/ID", to the paths of @id, with the present target of perf's link. */
int bid_names_note(struct bid_store *store, const struct bid_id *id, const char *path);

/*
 * Call @fn for each listed path of @id; @note is the file of the list entry, @there whether @path exists now. A non-zero return
 * ends the enumeration and is returned. The callback may remove both.
 */
int bid_names_each(struct bid_store *store, const struct bid_id *id,
		   int (*fn)(void *user, const char *note, const char *path, bool there), void *user);

/* Remove all listed paths of @id. */
void bid_names_forget(struct bid_store *store, const struct bid_id *id);

#endif
