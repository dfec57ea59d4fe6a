// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Directories: a listing is taken when the directory is opened, and read from memory, so that offsets stay right whatever perf
 * does.
 */
#include "ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	uint64_t number;
	mode_t format;
	uint32_t name; /* where it begins in names */
};

struct listing {
	struct entry *entries;
	size_t n, room;
	char *names; /* NUL-terminated each */
	size_t names_len, names_room;
};

static void listing_free(struct listing *listing)
{
	free(listing->entries);
	free(listing->names);
	free(listing);
}

/* Room for @more elements of @size bytes after the first @used ones. */
static int reserve(void **array, size_t *room, size_t used, size_t more, size_t size)
{
	size_t wanted = *room ? *room : 64;
	void *larger;

	while (wanted < used + more)
		wanted *= 2;
	if (wanted == *room)
		return 0;
	larger = realloc(*array, wanted * size);
	if (!larger)
		return -ENOMEM;
	*array = larger;
	*room = wanted;
	return 0;
}

static int add(struct listing *listing, const char *name, uint64_t number, mode_t format)
{
	size_t len = strlen(name) + 1;

	if (listing->names_len + len > UINT32_MAX ||
	    reserve((void **)&listing->entries, &listing->room, listing->n, 1, sizeof(*listing->entries)) < 0 ||
	    reserve((void **)&listing->names, &listing->names_room, listing->names_len, len, 1) < 0)
		return -ENOMEM;
	listing->entries[listing->n++] = (struct entry){ .number = number, .format = format, .name = (uint32_t)listing->names_len };
	memcpy(listing->names + listing->names_len, name, len);
	listing->names_len += len;
	return 0;
}

static int add_node(void *user, const char *name, const struct bid_node *node)
{
	return add(user, name, bid_inode_number(node), bid_node_format(node));
}

void bid_op_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode *inode = bid_inodes_find(fs->inodes, number);
	struct listing *listing = calloc(1, sizeof(*listing));
	int r = inode ? 0 : -ESTALE;

	if (!listing) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (r == 0)
		r = add(listing, ".", number, S_IFDIR);
	if (r == 0)
		r = add(listing, "..", BID_INODE_ROOT, S_IFDIR); /* the kernel knows better and tells the truth */
	if (r == 0)
		r = bid_tree_list(&fs->tree, &inode->node, add_node, listing);
	if (r < 0) {
		listing_free(listing);
		fuse_reply_err(req, -r);
		return;
	}
	fi->fh = (uintptr_t)listing;
	if (fuse_reply_open(req, fi) == -ENOENT)
		listing_free(listing);
}

void bid_op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
	const struct listing *listing = (const struct listing *)(uintptr_t)fi->fh;
	char *buffer = malloc(size);
	size_t used = 0;

	if (!buffer) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	for (size_t i = offset < 0 ? listing->n : (size_t)offset; i < listing->n; i++) {
		const struct entry *entry = &listing->entries[i];
		struct stat st = { .st_ino = entry->number, .st_mode = entry->format };
		size_t len = fuse_add_direntry(req, buffer + used, size - used, listing->names + entry->name, &st, (off_t)i + 1);

		if (len > size - used)
			break;
		used += len;
	}
	fuse_reply_buf(req, buffer, used);
	free(buffer);
}

void bid_op_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	listing_free((struct listing *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}
