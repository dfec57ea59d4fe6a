/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several names of one id become names of one object. */
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

#endif
