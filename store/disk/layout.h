/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where things are in the store: the names of perf's build-id cache (perf, util/build-id.c: build_id_cache__linkname() and its
 * neighbours) and of our private folder. Nothing else knows the layout.
 */
#ifndef BID_DISK_LAYOUT_H
#define BID_DISK_LAYOUT_H

#include <limits.h>

#include "api/store.h"

#define BID_LAYOUT_LINKS      ".build-id"
#define BID_LAYOUT_PRIVATE    ".bidfs"
#define BID_LAYOUT_LOCK	      BID_LAYOUT_PRIVATE "/lock"
#define BID_LAYOUT_TEMP	      BID_LAYOUT_PRIVATE "/tmp"
#define BID_LAYOUT_RECORDS    BID_LAYOUT_PRIVATE "/record"
#define BID_LAYOUT_SCANS      BID_LAYOUT_PRIVATE "/scan"
#define BID_LAYOUT_UNPACKED   BID_LAYOUT_PRIVATE "/unpacked"
#define BID_LAYOUT_TABLES     BID_LAYOUT_PRIVATE "/kallsyms"
#define BID_LAYOUT_SOURCES    BID_LAYOUT_PRIVATE "/source"
#define BID_LAYOUT_SECTIONS   BID_LAYOUT_PRIVATE "/section"
#define BID_LAYOUT_QUARANTINE BID_LAYOUT_PRIVATE "/quarantine"
#define BID_LAYOUT_FETCHING   BID_LAYOUT_PRIVATE "/fetching"
#define BID_LAYOUT_ABSENT     BID_LAYOUT_PRIVATE "/absent"
#define BID_LAYOUT_COOKIES    BID_LAYOUT_PRIVATE "/cookie"
#define BID_LAYOUT_NAMES      BID_LAYOUT_PRIVATE "/name"
#define BID_LAYOUT_FIRST      BID_LAYOUT_PRIVATE "/first"
#define BID_LAYOUT_UP	      "../../" /* what every link begins with */

#define BID_LAYOUT_MAX (BID_ID_HEX_MAX + 32) /* longest name that is made of an id alone */

/* The id that @id is filed under: perf's 20 bytes of a longer one. */
struct bid_id bid_layout_filed(const struct bid_id *id);

/* Is @path an absolute one that stays inside the tree of original paths when it is appended to the store's? */
bool bid_layout_is_original(const char *path);

/* Is @place, by its own name, one of the id filed as @filed? */
bool bid_layout_is_named_after(const char *place, const struct bid_id *filed);

/* Is @place, to which perf's link for @id leads, one of another id, under whatever name @id may be filed? */
bool bid_layout_is_astray(const char *place, const struct bid_id *id);

/*
 * The kind of @request, "elf"; of a piece with the XXH3-64 of its detail, which may be longer than a name can be:
 * "source-0123456789abcdef". Returns @buf.
 */
enum { BID_LAYOUT_SUFFIX_MAX = 32 };
const char *bid_layout_suffix(const struct bid_request *request, char buf[static BID_LAYOUT_SUFFIX_MAX]);

/* ".build-id/xx/rest" */
const char *bid_layout_link(const struct bid_id *id, char buf[static BID_LAYOUT_MAX]);

/* What the text of a link leads to, relative to the store; NULL if it has another form than perf's "../../PATH". Points into it. */
const char *bid_layout_target(const char *text);

/* "[debuginfod]/ID" and its like: "DIR/ID" */
const char *bid_layout_under(const char *dir, const struct bid_id *id, char buf[static BID_LAYOUT_MAX]);

/* ".bidfs/record/xx/rest.KIND" and its like: "DIR/xx/rest.SUFFIX" */
const char *bid_layout_fanned(const char *dir, const struct bid_id *id, const char *suffix, char buf[static BID_LAYOUT_MAX]);

/*
 * The names under which one id may be filed, in the order to try: itself, perf's 20 bytes of it, without the zero bytes that perf
 * padded it with, and padded as perf would. Begin with a zeroed one; returns false when there are no more.
 */
struct bid_spelling {
	unsigned step;
};
bool bid_spelling_next(struct bid_spelling *spelling, const struct bid_id *id, struct bid_id *ret_id);

/* What the place @path is if, in perf's old layout, it is a file and not a directory. */
enum bid_kind bid_place_file_kind(const char *path);

/*
 * The files that an id has in the layouts of others, which lower stores may have: trees of debug files (.build-id/xx/rest.debug)
 * and libdebuginfod's cache (ID/debuginfo). As bid_place_next(); @kind BID_KIND_NONE gives all, and alien->kind says which it is.
 */
struct bid_alien {
	unsigned step;
	enum bid_kind kind;
	char path[BID_LAYOUT_MAX];
};
bool bid_alien_next(struct bid_alien *alien, const struct bid_id *id, enum bid_kind kind);

/* Is @place one of those who have no path? */
bool bid_is_nameless(const char *place);

#endif
