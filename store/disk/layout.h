/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All names in a store, without I/O: those of perf's build-id cache (perf, util/build-id.c: build_id_cache__linkname() and its
 * neighbours) and of our private folder. docs/FORMAT.md describes them.
 */
#ifndef BID_DISK_LAYOUT_H
#define BID_DISK_LAYOUT_H

#include <limits.h>

#include "api/store.h"

#define BID_LAYOUT_LINKS	".build-id"
#define BID_LAYOUT_PRIVATE	".bidfs"
#define BID_LAYOUT_LOCK		BID_LAYOUT_PRIVATE "/lock"
#define BID_LAYOUT_TEMP		BID_LAYOUT_PRIVATE "/tmp"
#define BID_LAYOUT_RECORDS	BID_LAYOUT_PRIVATE "/record"
#define BID_LAYOUT_SCANS	BID_LAYOUT_PRIVATE "/scan"
#define BID_LAYOUT_UNPACKED	BID_LAYOUT_PRIVATE "/unpacked"
#define BID_LAYOUT_TABLES	BID_LAYOUT_PRIVATE "/kallsyms"
#define BID_LAYOUT_UNSTRIPPED	BID_LAYOUT_PRIVATE "/unstripped"
#define BID_LAYOUT_SOURCES	BID_LAYOUT_PRIVATE "/source"
#define BID_LAYOUT_SECTIONS	BID_LAYOUT_PRIVATE "/section"
#define BID_LAYOUT_QUARANTINE	BID_LAYOUT_PRIVATE "/quarantine"
#define BID_LAYOUT_FETCHING	BID_LAYOUT_PRIVATE "/fetching"
#define BID_LAYOUT_ABSENT	BID_LAYOUT_PRIVATE "/absent"
#define BID_LAYOUT_CONTENT_KEYS BID_LAYOUT_PRIVATE "/content-key"
#define BID_LAYOUT_NAMES	BID_LAYOUT_PRIVATE "/name"
#define BID_LAYOUT_FIRST	BID_LAYOUT_PRIVATE "/first"
#define BID_LAYOUT_EVICTED	BID_LAYOUT_PRIVATE "/evicted"
#define BID_LAYOUT_UP		"../../" /* the beginning of each link */

/* Is @name, in the private folder, the name of one of the directories or files above? */
bool bid_layout_is_private_dir(const char *name);
bool bid_layout_is_private_file(const char *name);

#define BID_LAYOUT_MAX (BID_ID_HEX_MAX + 32) /* bytes of the longest name of an id without a path */

/* The on-disk id of @id: its first 20 bytes, as perf has it. */
struct bid_id bid_layout_disk_id(const struct bid_id *id);

/* Does @path, relative to the store, lie beside the tree of original paths: in ".build-id" or ".bidfs"? */
bool bid_layout_is_beside(const char *path);

/* Is @path absolute, and inside the tree of original paths when appended to the path of the store? */
bool bid_layout_is_original(const char *path);

/* Is the last component of @objdir the on-disk id @disk_id? */
bool bid_layout_is_named_after(const char *objdir, const struct bid_id *disk_id);

/* Is @objdir, the target of perf's link for @id, the directory of another id, by all aliases of @id? */
bool bid_layout_is_mismatched(const char *objdir, const struct bid_id *id);

/*
 * Write the kind of @artifact, "elf"; for a source or section with the XXH3-64 of its subpath, "source-0123456789abcdef": a subpath
 * may be longer than a file name. Returns @buf.
 */
enum { BID_LAYOUT_SUFFIX_MAX = 32 };
const char *bid_layout_suffix(const struct bid_artifact *artifact, char buf[static BID_LAYOUT_SUFFIX_MAX]);

/* ".build-id/xx/rest" */
const char *bid_layout_link(const struct bid_id *id, char buf[static BID_LAYOUT_MAX]);

/*
 * The target of the link with the text @text, relative to the store; NULL for another form than perf's "../../PATH". Points into
 * @text.
 */
const char *bid_layout_target(const char *text);

/* "[debuginfod]/ID" and its like: "DIR/ID" */
const char *bid_layout_under(const char *dir, const struct bid_id *id, char buf[static BID_LAYOUT_MAX]);

/* The file of @kind in the object directory @objdir: "usr/bin/ls/ID/elf". Returns @buf. */
#define BID_LAYOUT_FILE_MAX (PATH_MAX + 16)
const char *bid_layout_file(const char *objdir, enum bid_kind kind, char buf[static BID_LAYOUT_FILE_MAX]);

/* ".bidfs/record/xx/rest.KIND" and its like: "DIR/xx/rest.SUFFIX" */
const char *bid_layout_fanout_path(const char *dir, const struct bid_id *id, const char *suffix, char buf[static BID_LAYOUT_MAX]);

/*
 * The aliases of an id on disk, in the order of search: the id, its first 20 bytes, the id without perf's zero padding, and the id
 * with it. Begin with a zeroed struct; returns false after the last.
 */
struct bid_alias_iter {
	unsigned step;
};
bool bid_alias_next(struct bid_alias_iter *alias, const struct bid_id *id, struct bid_id *ret_id);

/* Return the kind of @path in perf's old layout, where a file replaces the object directory. */
enum bid_kind bid_layout_file_kind(const char *path);

/* Is @objdir an object directory without an original path? */
bool bid_is_unnamed(const char *objdir);

#endif
