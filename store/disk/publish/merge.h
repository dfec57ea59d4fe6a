/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several names of one id become names of one object. */
#ifndef BID_DISK_MERGE_H
#define BID_DISK_MERGE_H

#include "api/elf.h"
#include "disk/entries.h"

/*
 * Let @target, another "<path>/<id>" of the same id, have everything that @entry has: what it lacks is linked into it, and of what
 * both have the better file gets both names. Of debug files, a stripped one gives way to any other. An ELF file that has debug
 * information or symbols that @target's has not becomes @target's debug file if it has none, and @target's takes its name.
 * Other files that differ keep their names, unless @entry's are @expendable: there are others of them. Both must have been checked.
 * Returns 0, or an error with which some of it may have been done.
 */
int bid_merge(struct bid_store *store, const struct bid_place_of *entry, const char *target, bool expendable);

/* Would bid_merge() change anything, @entry being of directories, or cannot tell? */
bool bid_merge_pending(struct bid_store *store, const struct bid_place_of *entry, const char *target);

/*
 * Has a file of @info debug information, or a symbol table, that the ELF file of the same id open at @fd is without? Then it is of
 * use beside that, as its debuginfo. An ELF file that has debug information is its own.
 */
bool bid_merge_completes(const struct bid_elf_info *info, int fd);

/*
 * Let the file @name in the directory @to be the one that is open at @fd, in the place of any other. It must have a name already:
 * of one that never had, the first may be swept, and then it cannot be given another.
 */
int bid_merge_file(struct bid_store *store, int fd, int to, const char *name);

/*
 * Link what @from has and @to lacks of @kinds into @to. Both are relative to the store. Returns 0 only if @to has all of it then;
 * -ENOENT if @to is not there any more.
 */
int bid_merge_missing(struct bid_store *store, const char *from, const char *to, unsigned kinds);

/*
 * A build that lay with the nameless, because its debug file came first or it was fetched, gets the path that it is added from.
 * perf's link for @id leads to the nameless, and its ELF file, or a kernel's table, lies at @path, "usr/bin/ls/ID": all else goes
 * there, the link leads there, and then the nameless have none of it. Readers find all of it at any moment, and after a crash.
 * Returns 0, -EBADMSG if what is at @path is not right, or an error with which some of it may have been done.
 */
int bid_merge_nameless(struct bid_store *store, const struct bid_id *id, const char *path, bool durable);

#endif
