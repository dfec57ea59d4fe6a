/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * [kernel.kcore]/ID/TIMESTAMP: copies of /proc/kcore, with symbol table and modules (perf, builtin-buildid-cache.c:
 * build_id_cache__add_kcore()). perf makes and reads its own. Each kernel with a symbol table has a derived copy, too, without
 * kcore: perf looks for a table here (util/symbol.c: dso__find_kallsyms()), and newer ones would otherwise take the table of the
 * running kernel. Pure C: knows no FUSE.
 */
#ifndef BID_FS_KCORE_H
#define BID_FS_KCORE_H

#include <limits.h>

#include "vfs/tree.h"

/* The directory of all copies, an original path for perf. */
#define BID_KCORE_PATH "[kernel.kcore]"

/* Look @name up in a BID_NODE_KCORE or BID_NODE_KCORE_COPY, as bid_tree_lookup(). */
int bid_kcore_lookup(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *child);

/* List the possible names of such a directory. Errors as of bid_store_each_entry(), or the result of @fn. */
int bid_kcore_list(const struct bid_tree *tree, const struct bid_node *dir, bid_store_entry_fn fn, void *user);

/*
 * The path in the store of the directory @name in @dir, which is the one of all copies or a BID_NODE_KCORE. -EPERM if perf makes
 * none of that name, and for the derived copy.
 */
int bid_kcore_directory(const struct bid_node *dir, const char *name, char ret_path[static PATH_MAX]);

/* Is @dir, a path in the store, a copy? */
bool bid_kcore_is_copy(const char *dir);

/* Is @name a file of a copy? */
bool bid_kcore_is_file(const char *name);

/* Has the kernel @id a directory of copies? As bid_store_has(). */
int bid_kcore_has(const struct bid_tree *tree, const struct bid_id *id);

#endif
