/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The server of a file:// tree: a tree of files by build-id. */
#ifndef BID_FETCH_FILE_TREE_H
#define BID_FETCH_FILE_TREE_H

#include "api/artifact.h"

struct bid_fetch_config;
struct bid_file_tree;

/* Make a server of the tree at @path, an absolute one. It uses links, own_device and for_all of @config. */
int bid_file_tree_new(const char *path, const struct bid_fetch_config *config, struct bid_file_tree **ret_tree);

/* Free @tree, which may be NULL. Connections without a response of the file system keep it. */
void bid_file_tree_free(struct bid_file_tree *tree);

/*
 * Start a thread that responds to @artifact. It opens the tree anew, because a mount may come later; a missing tree does not prove
 * that an artifact is absent. Returns a socket, from which come a struct bid_response and the bytes of the file; or a negative
 * errno: -EBUSY if the file system holds back too many requests.
 */
int bid_file_tree_connect(struct bid_file_tree *tree, const struct bid_artifact *artifact);

#endif
