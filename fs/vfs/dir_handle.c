// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/dir_handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "vfs/inode.h"

enum {
	DOTS = 2, /* "." and ".."; they precede all parts */
	PART_BITS = 47, /* hash bits of an inode number, see inode.h */
	SMALL = 16 << 10, /* bytes that a listing may take despite the limit: some 200 names */
};

struct dir_entry {
	uint64_t number;
	uint64_t offset; /* ascending */
	uint32_t name; /* offset in names */
	mode_t format; /* S_IFDIR, S_IFLNK or S_IFREG */
};

struct bid_dir_handle {
	struct bid_tree *tree; /* borrowed */
	struct bid_node node; /* owned */
	uint64_t number;
	size_t counted; /* bytes in tree->listed */
	unsigned n_parts;
	bool begun; /* the first name was requested */
	unsigned part; /* index of the part in memory; n_parts for none */
	size_t at; /* likely next entry */
	/* the part, sorted by offset */
	struct dir_entry *entries; /* owned */
	size_t n, room;
	char *names; /* NUL-terminated each; owned */
	size_t names_len, names_room;
};

static uint64_t begin_of(unsigned index)
{
	return DOTS + ((uint64_t)index << PART_BITS);
}

/* Count the memory of @handle. -ENOMEM if it is large, and all listings together are above the limit. */
static int count_memory(struct bid_dir_handle *handle)
{
	size_t bytes = handle->room * sizeof(*handle->entries) + handle->names_room, all;

	if (bytes == handle->counted)
		return 0;
	all = atomic_fetch_add(&handle->tree->listed, bytes - handle->counted) + bytes - handle->counted;
	handle->counted = bytes;
	return bytes > SMALL && all > BID_LIMIT_LISTINGS ? -ENOMEM : 0;
}

static int add_entry(struct bid_dir_handle *handle, const char *name, uint64_t number, mode_t format, uint64_t offset)
{
	size_t len = strlen(name) + 1;

	if (handle->names_len + len > UINT32_MAX || bid_array_grow(handle->entries, handle->n, handle->room) < 0 ||
	    bid_array_reserve(handle->names, handle->names_len, len, handle->names_room) < 0)
		return -ENOMEM;
	handle->entries[handle->n++] =
		(struct dir_entry){ .number = number, .offset = offset, .format = format, .name = (uint32_t)handle->names_len };
	memcpy(handle->names + handle->names_len, name, len);
	handle->names_len += len;
	return count_memory(handle);
}

/* bid_tree_fn. A directory of one part numbers its entries. */
static int add_node(void *user, const char *name, const struct bid_node *node)
{
	struct bid_dir_handle *handle = user;
	uint64_t number = bid_inode_number(node), offset = handle->n;

	if (handle->n_parts > 1)
		offset = begin_of(handle->part) + (number & ((1ULL << PART_BITS) - 1));
	return add_entry(handle, name, number, bid_node_format(node), offset);
}

static int compare_offsets(const void *a, const void *b)
{
	const struct dir_entry *one = a, *other = b;

	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	return (one->name > other->name) - (one->name < other->name);
}

/* Sort by offset, and move equal offsets, of two names with one number, apart. */
static void sort_entries(struct dir_entry *entries, size_t n)
{
	qsort(entries, n, sizeof(*entries), compare_offsets);
	for (size_t i = 1; i < n; i++)
		if (entries[i].offset <= entries[i - 1].offset)
			entries[i].offset = entries[i - 1].offset + 1;
}

/* Read part @index. Part 0 begins with the dots. */
static int read_part(struct bid_dir_handle *handle, unsigned index)
{
	size_t dots = index == 0 ? DOTS : 0;
	int r = 0;

	handle->part = index;
	handle->at = handle->n = handle->names_len = 0;
	if (dots)
		r = add_entry(handle, ".", handle->number, S_IFDIR, 0);
	if (r == 0 && dots)
		r = add_entry(handle, "..", BID_INODE_ROOT, S_IFDIR, 1); /* the kernel replaces the number */
	if (r == 0)
		r = bid_tree_list(handle->tree, &handle->node, index, add_node, handle);
	if (r < 0)
		handle->part = handle->n_parts;
	else if (handle->n_parts > 1 && handle->n > dots)
		sort_entries(handle->entries + dots, handle->n - dots);
	return r;
}

int bid_dir_handle_open(struct bid_tree *tree, const struct bid_node *node, uint64_t number, struct bid_dir_handle **ret_handle)
{
	struct bid_dir_handle *handle = calloc(1, sizeof(*handle));
	int r = handle ? bid_node_copy(node, &handle->node) : -ENOMEM;

	if (r < 0) {
		free(handle);
		return r;
	}
	handle->tree = tree;
	handle->number = number;
	handle->part = handle->n_parts = bid_tree_parts(node);
	if (handle->n_parts == 1)
		r = read_part(handle, 0);
	if (r < 0) {
		bid_dir_handle_close(handle);
		return r;
	}
	*ret_handle = handle;
	return 0;
}

/* Go to the first entry at or behind @offset, or to the end of the part. */
static void find_entry(struct bid_dir_handle *handle, uint64_t offset)
{
	size_t low = 0, high = handle->n;

	/* most listings continue */
	if ((handle->at == 0 || handle->entries[handle->at - 1].offset < offset) &&
	    (handle->at == handle->n || handle->entries[handle->at].offset >= offset))
		return;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (handle->entries[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	handle->at = low;
}

int bid_dir_handle_at(struct bid_dir_handle *handle, uint64_t offset, struct bid_dirname *ret_name)
{
	uint64_t index = handle->n_parts > 1 && offset > DOTS ? (offset - DOTS) >> PART_BITS : 0;
	/* rewinddir(3) shows the current names */
	bool anew = offset == 0 && handle->begun;

	handle->begun = true;
	for (; index < handle->n_parts; index++) {
		const struct dir_entry *entry;
		int r = handle->part != index || anew ? read_part(handle, (unsigned)index) : 0;

		if (r < 0)
			return r;
		anew = false;
		find_entry(handle, offset);
		if (handle->at == handle->n)
			continue;
		entry = &handle->entries[handle->at++];
		*ret_name = (struct bid_dirname){ .number = entry->number,
						  .next = entry->offset + 1,
						  .format = entry->format,
						  .name = handle->names + entry->name };
		return 1;
	}
	return 0;
}

void bid_dir_handle_close(struct bid_dir_handle *handle)
{
	atomic_fetch_sub(&handle->tree->listed, handle->counted);
	free(handle->entries);
	free(handle->names);
	bid_node_release(&handle->node);
	free(handle);
}
