/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sources and sections of a build, as far as the store has them. What is fetched of them is kept, but nothing in a source file or
 * in the bytes of a section says which build it belongs to: other than an ELF file, it is what a server said it is.
 */
#ifndef BID_API_PIECE_H
#define BID_API_PIECE_H

#include "api/store.h"

/* A callback; @piece lives until it returns. A non-zero return ends the enumeration, which then returns that value. */
typedef int (*bid_piece_fn)(void *user, const struct bid_request *piece);

/* Every piece of @kind that is kept for @id, in no order. 0, what @fn returned, or a negative errno. */
int bid_store_each_piece(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, bid_piece_fn fn, void *user);

/* The kinds of files that a section may be in, in debuginfod's order of asking: the @index-th, or BID_KIND_NONE after the last. */
enum bid_kind bid_section_whole(size_t index);

/*
 * stat(2) of a section as bid_store_find() would give it, but without cutting it out: who lists a directory with sizes must not
 * fill the disk. Returns 0, -ENOENT if no file that is here has it (it may be kept, or at a server), or as bid_store_find().
 */
int bid_store_section_stat(struct bid_store *store, const struct bid_request *request, struct stat *ret_stat);

/*
 * The name of every section of @id that is here, once each: in the debuginfo, in the ELF file, or kept. May read both files'
 * tables.
 */
int bid_store_each_section(struct bid_store *store, const struct bid_id *id, int (*fn)(void *user, const char *name), void *user);

/* What is kept for @id at the source path @path, absolute and canonical or "" for the top: a directory, a file or nothing. */
enum bid_entry bid_store_source_entry(struct bid_store *store, const struct bid_id *id, const char *path);

/* Every name directly below the directory @path, as above. Nothing if there is no such directory. */
int bid_store_each_source_in(struct bid_store *store, const struct bid_id *id, const char *path, bid_store_entry_fn fn, void *user);

#endif
