// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/reply.h"

#include <errno.h>
#include <limits.h>

#include "fuse/attr.h"

void bid_forget(struct bid_fs *fs, uint64_t number, uint64_t count)
{
	if (!bid_inodes_forget(fs->inodes, number, count))
		return;
	/* no handle is left, so that a file without a name can be closed */
	bid_fd_cache_forget(fs->fd_cache, number);
}

int bid_entry_make(struct bid_fs *fs, const struct bid_node *node, const struct bid_found *found,
		   struct fuse_entry_param *ret_entry)
{
	const struct stat *st = found && found->st.st_mode ? &found->st : NULL;
	struct fuse_entry_param entry = { 0 };
	struct bid_node exact = *node;
	struct bid_inode inode;
	char buf[PATH_MAX];
	const char *text = found && found->text ? found->text : bid_link_text(fs, node, buf);
	int r;

	if (st && node->type == BID_NODE_FILE)
		exact.version = bid_version_of(fs, node, st);
	/* perf reads each link several times, and the kernel keeps the text of an inode: another text is another inode */
	if (node->type == BID_NODE_LINK)
		exact.version = bid_inode_text_version(text);
	r = bid_inodes_lookup(fs->inodes, &exact, &inode);
	if (r < 0)
		return r;
	entry.ino = inode.number;
	entry.attr = bid_attr_make(fs, &inode, text, st);
	entry.entry_timeout = bid_entry_timeout(fs, node);
	entry.attr_timeout = bid_attr_timeout(fs, node);
	*ret_entry = entry;
	return 0;
}

void bid_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry)
{
	if (fuse_reply_entry(req, entry) == -ENOENT)
		bid_forget(bid_fs_of(req), entry->ino, 1); /* the kernel dropped the answer and takes no reference */
}

void bid_reply_node(fuse_req_t req, const struct bid_node *node, const struct bid_found *found)
{
	struct fuse_entry_param entry;

	if (bid_entry_make(bid_fs_of(req), node, found, &entry) < 0)
		fuse_reply_err(req, ENOMEM);
	else
		bid_reply_entry(req, &entry);
}

void bid_reply_attr(fuse_req_t req, const struct bid_inode *inode, const struct stat *st, double timeout)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct stat attr;
	char text[PATH_MAX];

	attr = bid_attr_make(fs, inode, st ? NULL : bid_link_text(fs, &inode->node, text), st);
	fuse_reply_attr(req, &attr, timeout);
}

void bid_reply_negative(fuse_req_t req, const struct bid_node *dir, int error)
{
	struct fuse_entry_param entry = { .ino = 0, .entry_timeout = bid_negative_timeout(dir, error) };

	fuse_reply_entry(req, &entry);
}

int bid_visible_error(const struct bid_fs *fs, int error)
{
	switch (-error) {
	case ETIMEDOUT:
	case EHOSTUNREACH:
		/* any other errno makes elfutils give up on the module for good */
		return fs->options->strict ? -error : ENOENT;
	case EBADMSG:
	case EOPNOTSUPP: /* a compressed file that cannot be unpacked */
		return fs->options->strict ? EIO : ENOENT;
	case EINPROGRESS:
		return ENOENT;
	default:
		return -error;
	}
}
