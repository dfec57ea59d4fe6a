// SPDX-License-Identifier: LGPL-2.1-or-later
/* Open directories: OPENDIR, READDIR, RELEASEDIR. */
#include "fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "api/source_section.h"
#include "base/cleanup.h"
#include "fuse/find_or_fetch.h"
#include "fuse/reply.h"
#include "vfs/dir_handle.h"

static void open_listing(fuse_req_t req, const struct bid_inode *inode, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_dir_handle *handle = NULL;
	int r = inode ? bid_dir_handle_open(&fs->tree, &inode->node, number, &handle) : -ESTALE;

	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	fi->fh = (uintptr_t)handle;
	if (fuse_reply_open(req, fi) == -ENOENT)
		bid_dir_handle_close(handle);
}

/* Answer OPENDIR of a directory of sources that may be a file. */
static void finish_opendir(fuse_req_t req, struct bid_wanted *wanted, int error, struct bid_file *file)
{
	/* a file: ESTALE makes the kernel repeat the LOOKUP within open(2) */
	fuse_reply_err(req, error == 0 ? ESTALE : bid_visible_error(bid_fs_of(req), error));
}

/*
 * LOOKUP takes an unknown name of a source for a directory. O_DIRECTORY means a listing, which does not wait for the network.
 * Any other open is of a file.
 */
static bool may_be_source(const struct bid_fs *fs, const struct bid_node *node, int flags)
{
	return node->type == BID_NODE_SOURCES && *bid_node_path(node) && !(flags & O_DIRECTORY) && fs->tree.any_id &&
	       bid_store_source_entry(fs->store, &node->id, bid_node_path(node)) != BID_ENTRY_DIR;
}

void bid_op_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_subpath *subpath;

	if (inode && may_be_source(fs, &inode->node, fi->flags) && bid_subpath_source(bid_node_path(&inode->node), &subpath) == 0) {
		struct bid_wanted wanted = { .artifact = { .id = inode->node.id, .kind = BID_KIND_SOURCE, .subpath = subpath } };

		bid_find_or_fetch(req, &wanted, finish_opendir);
		bid_subpath_unref(subpath);
		return;
	}
	open_listing(req, inode, number, fi);
}

void bid_op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct bid_dir_handle *handle = (struct bid_dir_handle *)(uintptr_t)fi->fh;
	bid_auto_free char *buffer = malloc(size);
	uint64_t at = offset < 0 ? UINT64_MAX : (uint64_t)offset;
	struct bid_dirname name;
	size_t used = 0;
	int r = buffer ? 0 : -ENOMEM;

	while (r == 0 && (r = bid_dir_handle_at(handle, at, &name)) > 0) {
		struct stat st = { .st_ino = name.number, .st_mode = name.format };
		size_t room = size - used, len = fuse_add_direntry(req, buffer + used, room, name.name, &st, (off_t)name.next);

		r = len > room;
		used += r ? 0 : len;
		at = name.next;
	}
	/* names before the error come first */
	if (r < 0 && used == 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_buf(req, buffer, used);
}

void bid_op_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	bid_dir_handle_close((struct bid_dir_handle *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}
