// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The names of a directory. With the directories of links, which are always the same, goes what a lookup would say (READDIRPLUS):
 * the kernel asks for that with the first names of any directory, and gets the names alone of the others.
 */
#include "fuse/ops.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "fuse/reply.h"
#include "vfs/dirlist.h"

/* A buffer that is filled with names. */
struct names {
	fuse_req_t req;
	const struct bid_inode *dir; /* NULL: the names alone */
	char *buffer; /* owned */
	size_t size, used;
	uint64_t *inodes; /* that go with the names: numbers; owned */
	size_t n, room;
};

static bool has_entry(const struct names *names, const char *name)
{
	return names->dir && name[0] != '.' && (names->dir->node.type == BID_NODE_LINKS || names->dir->node.type == BID_NODE_DEBUG);
}

/* As LOOKUP of @name. Without it, for whatever reason, the kernel looks the name up if it needs it. */
static void add_entry(struct names *names, const char *name, struct fuse_entry_param *entry)
{
	struct bid_fs *fs = bid_fs_of(names->req);
	struct bid_node child;

	if (bid_array_grow(names->inodes, names->n, names->room) < 0 ||
	    bid_tree_lookup(&fs->tree, &names->dir->node, name, &child, NULL) < 0)
		return;
	if (bid_entry_make(fs, &child, NULL, entry) == 0)
		names->inodes[names->n++] = entry->ino;
	bid_node_release(&child);
}

/* Returns false if there is no room. */
static bool add(struct names *names, const struct bid_dirname *name, bool plus)
{
	struct fuse_entry_param entry = { .attr = { .st_ino = name->number, .st_mode = name->format } };
	char *at = names->buffer + names->used;
	size_t room = names->size - names->used, len;

	len = plus ? fuse_add_direntry_plus(names->req, NULL, 0, name->name, NULL, 0)
		   : fuse_add_direntry(names->req, NULL, 0, name->name, NULL, 0);
	if (len > room)
		return false;
	if (plus && has_entry(names, name->name))
		add_entry(names, name->name, &entry);
	if (plus)
		fuse_add_direntry_plus(names->req, at, room, name->name, &entry, (off_t)name->next);
	else
		fuse_add_direntry(names->req, at, room, name->name, &entry.attr, (off_t)name->next);
	names->used += len;
	return true;
}

static void answer(struct names *names)
{
	/* the caller is gone, so the kernel will not take them back */
	if (fuse_reply_buf(names->req, names->buffer, names->used) == -ENOENT)
		for (size_t i = 0; i < names->n; i++)
			bid_forget(bid_fs_of(names->req), names->inodes[i], 1);
}

static void list_names(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi, bool plus)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_dirlist *list = (struct bid_dirlist *)(uintptr_t)fi->fh;
	struct bid_inode buffer;
	struct names names = { .req = req, .buffer = malloc(size), .size = size };
	uint64_t at = offset < 0 ? UINT64_MAX : (uint64_t)offset;
	struct bid_dirname name;
	int r = names.buffer ? 0 : -ENOMEM;

	if (plus)
		names.dir = bid_inodes_find(fs->inodes, number, &buffer);
	while (r == 0 && (r = bid_dirlist_at(list, at, &name)) > 0) {
		r = add(&names, &name, plus) ? 0 : 1;
		at = name.next;
	}
	/* an error is told when what was read before it has been taken */
	if (r < 0 && names.used == 0)
		fuse_reply_err(req, -r);
	else
		answer(&names);
	free(names.buffer);
	free(names.inodes);
}

void bid_op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
	list_names(req, number, size, offset, fi, false);
}

void bid_op_readdirplus(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
	list_names(req, number, size, offset, fi, true);
}
