/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * [kernel.kcore]/ID/TIMESTAMP: copies of /proc/kcore, with symbol table and modules (perf, builtin-buildid-cache.c:
 * build_id_cache__add_kcore()). The mount shows those that perf made in the store. Each kernel with a symbol table has a derived
 * copy, too, without kcore: perf looks for a table here (util/symbol.c: dso__find_kallsyms()), and newer ones would otherwise take
 * the table of the running kernel. Pure C: knows no FUSE.
 *
 *	bid_kcore_lookup_id(), bid_kcore_lookup()	bid_tree_lookup()
 *	bid_kcore_list()			bid_tree_list()
 */
#ifndef BID_FS_KCORE_H
#define BID_FS_KCORE_H

#include "vfs/tree.h"

/* The directory of all copies, an original path for perf. */
#define BID_KCORE_PATH "[kernel.kcore]"

/* Look the kernel @name up in BID_KCORE_PATH, as bid_tree_lookup(). */
int bid_kcore_lookup_id(const struct bid_tree *tree, const char *name, struct bid_node *child);

/* Look @name up in a BID_NODE_KCORE or BID_NODE_KCORE_COPY, as bid_tree_lookup(). */
int bid_kcore_lookup(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *child);

/* List the possible names of such a directory. Errors as of bid_store_each_entry(), or the result of @fn. */
int bid_kcore_list(const struct bid_tree *tree, const struct bid_node *dir, bid_store_entry_fn fn, void *user);

#endif
