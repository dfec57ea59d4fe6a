/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * [kernel.kcore]/ID/STAMP: copies of /proc/kcore, with the symbol table and the modules of their time (perf,
 * builtin-buildid-cache.c: build_id_cache__add_kcore()). Those that perf made are shown as they are, and it may make more.
 * Beside them one is offered for
 * every kernel that has a symbol table, without the kcore: perf takes a table from here (util/symbol.c: dso__find_kallsyms()), and
 * where newer ones find none they take that of the running kernel, whichever is asked for. Pure C: knows no FUSE.
 */
#ifndef BID_FS_KCORE_H
#define BID_FS_KCORE_H

#include <limits.h>

#include "vfs/tree.h"

/* The directory of all copies: an original path to perf. */
#define BID_KCORE_PATH "[kernel.kcore]"

/* As bid_tree_lookup(), in a directory of the copies of one kernel, or in one copy. */
int bid_kcore_lookup(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *child);

/* Every name that may mean something in such a directory. Errors as of bid_store_each_entry(), or what @fn returned. */
int bid_kcore_list(const struct bid_tree *tree, const struct bid_node *dir, bid_store_entry_fn fn, void *user);

/*
 * Where in the store perf may make the directory @name in @dir, which is that of all copies or a BID_NODE_KCORE. -EPERM if the name
 * is none of perf's, or that of the copy that is offered.
 */
int bid_kcore_directory(const struct bid_node *dir, const char *name, char ret_path[static PATH_MAX]);

/* Is @dir, a path in the store, that of a copy? */
bool bid_kcore_is_copy(const char *dir);

/* Is @name that of a file of a copy? */
bool bid_kcore_is_file(const char *name);

/* Is there a directory for the copies of the kernel @id? As bid_store_has(). */
int bid_kcore_has(const struct bid_tree *tree, const struct bid_id *id);

#endif
