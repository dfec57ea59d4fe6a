// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The names of a directory, and with some of them what a lookup would say.
 *
 * The kernel takes that along with the names (READDIRPLUS) if it is there, and asks for it with the first names of any directory.
 * It gets it of the directories of links, which are always the same, and of the links of those who look at them one by one.
 */
#include "ops.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "dirlist.h"
#include "reply.h"

/* What the kernel is told of with a name. */
struct along {
	uint64_t number;
	struct bid_asked asked;
	struct bid_told told;
};

/* A buffer that is filled with names. */
struct names {
	fuse_req_t req;
	const struct bid_inode *dir; /* NULL: nothing is told of but the names */
	char *buffer; /* owned */
	size_t size, used;
	struct along *along; /* owned */
	size_t n, room;
};

static bool is_told_of(const struct names *names, const char *name)
{
	struct bid_fs *fs = bid_fs_of(names->req);

	if (!names->dir || name[0] == '.')
		return false;
	switch (names->dir->node.type) {
	case BID_NODE_LINKS:
	case BID_NODE_DEBUG:
		return true;
	case BID_NODE_LINKS_FAN:
		return bid_lookers_has(&fs->lookers, fuse_req_ctx(names->req)->pid);
	default:
		return false;
	}
}

/* As LOOKUP of @name. Without it, for whatever reason, the kernel looks the name up if it needs it. */
static void tell_along(struct names *names, const char *name, struct fuse_entry_param *entry)
{
	struct bid_fs *fs = bid_fs_of(names->req);
	const struct bid_inode *dir = names->dir;
	struct along along = { .asked = { .dir = dir->node.type, .dir_number = dir->number, .name = name } };
	struct bid_node child;

	if (bid_array_grow(names->along, names->n, names->room) < 0)
		return;
	if (dir->node.type == BID_NODE_LINKS_FAN)
		bid_belief_look(fs, &dir->node, name);
	along.asked.mark = bid_watch_mark(fs->watch);
	if (bid_tree_lookup(&fs->tree, &dir->node, name, &child) < 0)
		return;
	if (bid_entry_ask(fs, &along.asked, &child, NULL, entry, &along.told) == 0) {
		along.number = entry->ino;
		names->along[names->n++] = along;
	}
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
	if (plus && is_told_of(names, name->name))
		tell_along(names, name->name, &entry);
	if (plus)
		fuse_add_direntry_plus(names->req, at, room, name->name, &entry, (off_t)name->next);
	else
		fuse_add_direntry(names->req, at, room, name->name, &entry.attr, (off_t)name->next);
	names->used += len;
	return true;
}

static void answer(struct names *names)
{
	struct bid_fs *fs = bid_fs_of(names->req);
	bool gone = fuse_reply_buf(names->req, names->buffer, names->used) == -ENOENT;

	for (size_t i = 0; i < names->n; i++) {
		/* the caller is gone, so the kernel will not take it back */
		if (gone)
			bid_forget(fs, names->along[i].number, 1);
		bid_belief_check(fs, &names->along[i].asked, &names->along[i].told);
	}
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
	free(names.along);
}

void bid_op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
	list_names(req, number, size, offset, fi, false);
}

void bid_op_readdirplus(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
	list_names(req, number, size, offset, fi, true);
}
