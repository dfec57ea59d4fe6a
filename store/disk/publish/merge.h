/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several names of one id become names of one object, or of another object. */
#ifndef BID_DISK_MERGE_H
#define BID_DISK_MERGE_H

#include "api/store.h"

/*
 * Merge the files of @kinds in the object directory @from into @to, another one of the same id; both are relative to the store.
 * Links files that @to lacks, and gives one object both names if the bytes are the same. A debug file replaces a stripped one.
 * Other files keep their names. The caller has checked both. Returns 0, -ENOENT if @to does not exist, or an error, perhaps after a
 * part of the work.
 */
int bid_merge(struct bid_store *store, const char *from, const char *to, unsigned kinds);

/*
 * Move a build from the unnamed directory to the path of its addition. The build was unnamed because it was fetched, or its debug
 * file came first. On entry perf's link for @id leads to the unnamed directory, and @path, "usr/bin/ls/ID", has the ELF file or a
 * kernel's table. All else moves there, then the link, then the unnamed directory loses its files. Readers find all files at any
 * moment, and after a crash. Returns 0, -EBADMSG if @path has a wrong file, or an error, perhaps after a part of the work.
 */
int bid_merge_unnamed(struct bid_store *store, const struct bid_id *id, const char *path, bool durable);

/*
 * Replace the store's file of @artifact by the file at @fd, which has a name already, under the known names: the target of perf's
 * link, the recorded names, and @path, which may be NULL. With @only, only the file with these attributes. The result is on disk
 * on return of the number of replaced names; else a negative errno.
 */
int bid_replace(struct bid_store *store, const struct bid_artifact *artifact, const char *path, const struct stat *only, int fd);

/*
 * Does the file at @fd, with @st, grant privileges: setuid, setgid or capabilities? A hard link in the store keeps such a file
 * alive after an update for security. A file may get privileges after its link.
 */
bool bid_rights_given(int fd, const struct stat *st);

/*
 * Replace the file of @artifact at @fd by a copy without privileges, under the names of bid_replace(), for the readers of @mode
 * (bid_set_readers()). The copy is on disk on return of 0.
 */
int bid_rights_strip(struct bid_store *store, const struct bid_artifact *artifact, int fd, const char *path, mode_t mode);

#endif
