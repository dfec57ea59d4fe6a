/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several names of one id become names of one object. */
#ifndef BID_DISK_MERGE_H
#define BID_DISK_MERGE_H

#include "api/elf.h"
#include "disk/entries.h"

/*
 * Merge @entry into @target, another "<path>/<id>" of the same id: link missing files into it, and give the better of two files
 * both names. Any other debug file replaces a stripped one. An ELF file with debug information or symbols that @target's ELF file
 * lacks becomes @target's debug file, if @target has none, and @target's ELF file takes its name. Other differing files keep their
 * names, unless @entry's files are @expendable: copies exist elsewhere. The caller has checked both. Returns 0, or an error,
 * perhaps after a part of the work.
 */
int bid_merge(struct bid_store *store, const struct bid_objdir *entry, const char *target, bool expendable);

/* Would bid_merge() change anything, @entry being of directories, or cannot tell? */
bool bid_merge_pending(struct bid_store *store, const struct bid_objdir *entry, const char *target);

/*
 * Does a file of @info have debug information or a symbol table that the ELF file of the same id at @fd lacks? It then serves as
 * its debuginfo. An ELF file with debug information needs none.
 */
bool bid_merge_completes(const struct bid_elf_info *info, int fd);

/*
 * Put the file at @fd under @name in the directory @to, in place of any other file. The file must have a name already: a first name
 * may be swept, and a file without names cannot get another one.
 */
int bid_merge_file(struct bid_store *store, int fd, int to, const char *name);

/*
 * Link the files of @kinds from @from into @to, if @to lacks them. Both are relative to the store. Returns 0 only if @to then has
 * all of them; -ENOENT if @to no longer exists.
 */
int bid_merge_missing(struct bid_store *store, const char *from, const char *to, unsigned kinds);

/*
 * Move a build from the unnamed directory to the path of its addition. The build was unnamed because it was fetched, or its debug
 * file came first. On entry perf's link for @id leads to the unnamed directory, and @path, "usr/bin/ls/ID", has the ELF file or a
 * kernel's table. All else moves there, then the link, then the unnamed directory loses its files. Readers find all files at any
 * moment, and after a crash. Returns 0, -EBADMSG if @path has a wrong file, or an error, perhaps after a part of the work.
 */
int bid_merge_unnamed(struct bid_store *store, const struct bid_id *id, const char *path, bool durable);

#endif
