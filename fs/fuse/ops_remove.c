// SPDX-License-Identifier: LGPL-2.1-or-later
/* UNLINK, RMDIR. */
#include "fuse/ops.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static int unlink_link(struct bid_fs *fs, const struct bid_node *link)
{
	char where[PATH_MAX];
	int r = bid_store_unlink_link(fs->store, &link->id);

	if ((r == 0 || r == -ENOENT) && bid_store_perf_link(fs->store, &link->id, where, sizeof(where)) == 0)
		r = -EROFS; /* a lower store has a link, too */
	else if (r == 0 || r == -ENOENT)
		r = bid_whiteouts_add(&fs->link_whiteouts, &link->id);
	return r;
}

/* Unlink the file of @node in the directory @path, or derived definitions, which are in no directory. */
static int unlink_artifact(struct bid_fs *fs, const struct bid_node *node, const char *path)
{
	struct bid_artifact artifact = bid_node_artifact(node);
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_unlink(fs->store, &artifact, path);

	if (r == -ENOENT && node->kind == BID_KIND_PROBES)
		r = bid_store_find(fs->store, &artifact, BID_MAY_DERIVE, &file);
	bid_file_release(&file);
	if (r == 0 && node->kind == BID_KIND_PROBES)
		r = bid_whiteouts_add(&fs->probe_whiteouts, &node->id);
	return r;
}

void bid_op_unlink(fuse_req_t req, fuse_ino_t number, const char *name)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *parent = bid_inodes_find(fs->inodes, number, &buffer);
	char buf[BID_TMPFILES_DIR];
	struct bid_tmpfile *tmpfile;
	struct bid_node node = { 0 };
	int r;

	if (!parent) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	tmpfile = bid_tmpfiles_find(fs->tmpfiles, bid_tmpfiles_dir(&parent->node, buf), name);
	if (tmpfile) {
		r = bid_tmpfile_unlink(fs->tmpfiles, tmpfile);
		bid_tmpfile_unref(fs->tmpfiles, tmpfile);
		/* a link may have replaced tar's placeholder */
		if (r != -EEXIST && parent->node.type != BID_NODE_LINKS_FANOUT) {
			fuse_reply_err(req, -r);
			return;
		}
	}
	r = bid_tree_lookup(&fs->tree, &parent->node, name, &node, NULL);
	if (r == 0 && node.type == BID_NODE_LINK)
		r = unlink_link(fs, &node);
	else if (r == 0 && node.type == BID_NODE_FILE && parent->node.type == BID_NODE_PATH_ID)
		r = unlink_artifact(fs, &node, bid_node_path(&parent->node));
	else if (r == 0)
		r = -EPERM;
	bid_node_release(&node);
	fuse_reply_err(req, (r == -EINVAL || r == -ENOENT) ? (tmpfile ? 0 : ENOENT) : -r);
}

void bid_op_rmdir(fuse_req_t req, fuse_ino_t number, const char *name)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *parent = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_node node = { 0 };
	char path[PATH_MAX];
	int r = parent ? bid_tree_lookup(&fs->tree, &parent->node, name, &node, NULL) : -ESTALE;

	path[0] = '\0';
	if (r == 0 && node.type != BID_NODE_PATH && node.type != BID_NODE_PATH_ID) {
		r = -EPERM;
	} else if (r == 0) {
		snprintf(path, sizeof(path), "%s", bid_node_path(&node));
		r = bid_tmpfiles_has_in(fs->tmpfiles, path, !bid_tree_is_temporary(path)) ? -ENOTEMPTY
											  : bid_store_rmdir(fs->store, path);
	}
	/* a listing hides temporary names in "<path>/ID", so that rmdir(2) removes them */
	if (r == 0) {
		bid_tmpfiles_unname_in(fs->tmpfiles, path);
		bid_inodes_remove(fs->inodes, &node);
	}
	bid_node_release(&node);
	fuse_reply_err(req, -r);
}
