/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stored sources and sections of a build: artifacts with a subpath. They carry no id: a server vouches for them, except for a
 * section derived from a stored file.
 */
#ifndef BID_API_SOURCE_SECTION_H
#define BID_API_SOURCE_SECTION_H

#include "api/store.h"

/*
 * Takes @artifact, which lives until the callback returns. A non-zero return ends the enumeration, which then returns this value.
 */
typedef int (*bid_source_section_fn)(void *user, const struct bid_artifact *artifact);

/* Call @fn for every stored artifact of @kind of @id, in no order. Returns 0, the result of @fn, or a negative errno. */
int bid_store_each_source_section(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, bid_source_section_fn fn,
				  void *user);

/* The @index-th kind of file that may contain a section, in debuginfod's order; BID_KIND_NONE after the last. */
enum bid_kind bid_section_whole_file(size_t index);

/*
 * stat(2) a section that bid_store_find() would derive, without deriving it: a listing with sizes must not fill the disk. Returns
 * 0, -ENOENT if no stored ELF or debug file has the section, or as bid_store_find().
 */
int bid_store_section_stat(struct bid_store *store, const struct bid_artifact *artifact, struct stat *ret_stat);

/*
 * Call @fn for the name of every section in the stored debuginfo, ELF file or section files of @id, once each;
 * BID_LIMIT_LISTED_SECTIONS at most. Returns as bid_store_each_source_section().
 */
int bid_store_each_section(struct bid_store *store, const struct bid_id *id, int (*fn)(void *user, const char *name), void *user);

/* Return the type of the stored source path @path of @id, absolute and canonical, or "" for the top. */
enum bid_entry bid_store_source_entry(struct bid_store *store, const struct bid_id *id, const char *path);

/* Call @fn for every stored name directly below the source directory @path of @id. Returns as bid_store_each_source_section(). */
int bid_store_each_source_in(struct bid_store *store, const struct bid_id *id, const char *path, bid_store_entry_fn fn, void *user);

#endif
