// SPDX-License-Identifier: LGPL-2.1-or-later
/* Open directories: OPENDIR, READDIR, READDIRPLUS, RELEASEDIR. */
#include "fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include "api/piece.h"
#include "base/array.h"
#include "fuse/reply.h"
#include "vfs/dirlist.h"

/*
 * Let the kernel keep the listing of the ids, or of the links of one fan-out directory, while the store has the same ids. Each
 * OPENDIR compares. A reader that fills the kernel's copy later than a change fails by the modification time of the directory.
 */
static void keep_ids(struct bid_fs *fs, const struct bid_node *node, fuse_ino_t number, struct fuse_file_info *fi)
{
	bool all = node->type == BID_NODE_IDS;
	struct bid_listed *listed = all ? &fs->all_ids : &fs->links[node->fanout];
	struct timespec now;
	uint64_t cookie, before;
	int r;

	r = all ? bid_store_ids_cookie(fs->store, &cookie) : bid_store_ids_cookie_in(fs->store, node->fanout, &cookie);
	/* the directory is changing */
	if (r < 0)
		return;
	fi->cache_readdir = 1;
	before = atomic_exchange(&listed->cookie, cookie);
	fi->keep_cache = before == cookie;
	/* before the first OPENDIR the kernel has no listing */
	if (fi->keep_cache || before == 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	atomic_store(&listed->changed, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	/* attributes only: the listing gets the new time */
	fuse_lowlevel_notify_inval_inode(fs->session, number, -1, 0);
}

static void open_listing(fuse_req_t req, const struct bid_inode *inode, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_dirlist *list = NULL;
	int r = inode ? bid_dirlist_open(&fs->tree, &inode->node, number, &list) : -ESTALE;

	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	if (inode->node.type == BID_NODE_IDS || inode->node.type == BID_NODE_LINKS_FANOUT)
		keep_ids(fs, &inode->node, number, fi);
	fi->fh = (uintptr_t)list;
	if (fuse_reply_open(req, fi) == -ENOENT)
		bid_dirlist_close(list);
}

/* Answer OPENDIR of a directory of sources that may be a file. */
static void answer_source(fuse_req_t req, struct bid_pending *pending, int error, struct bid_file *file)
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
	struct bid_detail *detail;

	if (inode && may_be_source(fs, &inode->node, fi->flags) && bid_detail_source(bid_node_path(&inode->node), &detail) == 0) {
		struct bid_pending pending = { .artifact = { .id = inode->node.id, .kind = BID_KIND_SOURCE, .detail = detail } };

		bid_find_or_fetch(req, &pending, answer_source);
		bid_detail_unref(detail);
		return;
	}
	open_listing(req, inode, number, fi);
}

/* The names of one answer. */
struct reply_buffer {
	fuse_req_t req;
	const struct bid_inode *dir; /* NULL for names without entries */
	char *data; /* owned */
	size_t size, used;
	uint64_t *inodes; /* numbers of the entries; owned */
	size_t n, room;
};

/*
 * Does the entry of @name go with it (READDIRPLUS)? The kernel wants entries with the first names of each directory. Only
 * directories of links, which never change, have them.
 */
static bool has_entry(const struct reply_buffer *buffer, const char *name)
{
	return buffer->dir && name[0] != '.' &&
	       (buffer->dir->node.type == BID_NODE_LINKS || buffer->dir->node.type == BID_NODE_DEBUG);
}

/* Make the entry of @name, as LOOKUP does. Without it the kernel sends LOOKUP. */
static void add_entry(struct reply_buffer *buffer, const char *name, struct fuse_entry_param *entry)
{
	struct bid_fs *fs = bid_fs_of(buffer->req);
	struct bid_node child;

	if (bid_array_grow(buffer->inodes, buffer->n, buffer->room) < 0 ||
	    bid_tree_lookup(&fs->tree, &buffer->dir->node, name, &child, NULL) < 0)
		return;
	if (bid_entry_make(fs, &child, NULL, entry) == 0)
		buffer->inodes[buffer->n++] = entry->ino;
	bid_node_release(&child);
}

/* Returns false without room. */
static bool add_name(struct reply_buffer *buffer, const struct bid_dirname *name, bool plus)
{
	struct fuse_entry_param entry = { .attr = { .st_ino = name->number, .st_mode = name->format } };
	char *at = buffer->data + buffer->used;
	size_t room = buffer->size - buffer->used, len;

	len = plus ? fuse_add_direntry_plus(buffer->req, NULL, 0, name->name, NULL, 0)
		   : fuse_add_direntry(buffer->req, NULL, 0, name->name, NULL, 0);
	if (len > room)
		return false;
	if (plus && has_entry(buffer, name->name))
		add_entry(buffer, name->name, &entry);
	if (plus)
		fuse_add_direntry_plus(buffer->req, at, room, name->name, &entry, (off_t)name->next);
	else
		fuse_add_direntry(buffer->req, at, room, name->name, &entry.attr, (off_t)name->next);
	buffer->used += len;
	return true;
}

static void send_names(struct reply_buffer *buffer)
{
	/* the kernel dropped the answer and takes no references */
	if (fuse_reply_buf(buffer->req, buffer->data, buffer->used) == -ENOENT)
		for (size_t i = 0; i < buffer->n; i++)
			bid_forget(bid_fs_of(buffer->req), buffer->inodes[i], 1);
}

static void list_names(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi, bool plus)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_dirlist *list = (struct bid_dirlist *)(uintptr_t)fi->fh;
	struct bid_inode buffer;
	struct reply_buffer reply = { .req = req, .data = malloc(size), .size = size };
	uint64_t at = offset < 0 ? UINT64_MAX : (uint64_t)offset;
	struct bid_dirname name;
	int r = reply.data ? 0 : -ENOMEM;

	if (plus)
		reply.dir = bid_inodes_find(fs->inodes, number, &buffer);
	while (r == 0 && (r = bid_dirlist_at(list, at, &name)) > 0) {
		r = add_name(&reply, &name, plus) ? 0 : 1;
		at = name.next;
	}
	/* names before the error come first */
	if (r < 0 && reply.used == 0)
		fuse_reply_err(req, -r);
	else
		send_names(&reply);
	free(reply.data);
	free(reply.inodes);
}

void bid_op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
	list_names(req, number, size, offset, fi, false);
}

void bid_op_readdirplus(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
	list_names(req, number, size, offset, fi, true);
}

void bid_op_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	bid_dirlist_close((struct bid_dirlist *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}
