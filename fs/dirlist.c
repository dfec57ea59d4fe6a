// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dirlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inode.h"

enum {
	NONE = -1,
	DOTS = 2, /* "." and "..", which are before all parts */
	PART_BITS = 47, /* of the numbers in one part: see inode.h */
};

struct entry {
	uint64_t number;
	uint64_t offset; /* at which it is found; ascending */
	uint32_t name; /* where it begins in names */
	mode_t format; /* S_IFDIR, S_IFLNK or S_IFREG */
};

struct bid_dirlist {
	const struct bid_tree *tree; /* borrowed */
	struct bid_node node; /* owned */
	uint64_t number;
	unsigned parts;
	int index; /* of the part in memory, or NONE */
	bool begun; /* names were asked for */
	size_t at; /* the entry that is probably next */
	struct entry *entries; /* owned */
	size_t n, room;
	char *names; /* NUL-terminated each; owned */
	size_t names_len, names_room;
};

static uint64_t begin_of(unsigned index)
{
	return DOTS + ((uint64_t)index << PART_BITS);
}

static int add(struct bid_dirlist *list, const char *name, uint64_t number, mode_t format, uint64_t offset)
{
	size_t len = strlen(name) + 1;

	if (list->names_len + len > UINT32_MAX || bid_array_grow(list->entries, list->n, list->room) < 0 ||
	    bid_array_reserve(list->names, list->names_len, len, list->names_room) < 0)
		return -ENOMEM;
	list->entries[list->n++] =
		(struct entry){ .number = number, .offset = offset, .format = format, .name = (uint32_t)list->names_len };
	memcpy(list->names + list->names_len, name, len);
	list->names_len += len;
	return 0;
}

/* bid_tree_fn. The offsets of a directory of one part count, and are not made of numbers. */
static int add_node(void *user, const char *name, const struct bid_node *node)
{
	struct bid_dirlist *list = user;
	uint64_t number = bid_inode_number(node), offset = list->n;

	if (list->parts > 1)
		offset = begin_of((unsigned)list->index) + (number & ((1ULL << PART_BITS) - 1));
	return add(list, name, number, bid_node_format(node), offset);
}

static int compare(const void *a, const void *b)
{
	const struct entry *one = a, *other = b;

	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	return (one->name > other->name) - (one->name < other->name);
}

/* By offset. Two names of one number, of which there are none in most stores, stand one behind the other. */
static void sort(struct entry *entries, size_t n)
{
	qsort(entries, n, sizeof(*entries), compare);
	for (size_t i = 1; i < n; i++)
		if (entries[i].offset <= entries[i - 1].offset)
			entries[i].offset = entries[i - 1].offset + 1;
}

/* Read part @index in place of the one in memory. Part 0 begins with the dots. */
static int read_part(struct bid_dirlist *list, unsigned index)
{
	size_t dots = index == 0 ? DOTS : 0;
	int r = 0;

	list->index = (int)index;
	list->at = list->n = list->names_len = 0;
	if (index == 0)
		r = add(list, ".", list->number, S_IFDIR, 0);
	if (r == 0 && index == 0)
		r = add(list, "..", BID_INODE_ROOT, S_IFDIR, 1); /* the kernel knows better and tells the truth */
	if (r == 0)
		r = bid_tree_list(list->tree, &list->node, index, add_node, list);
	if (r < 0)
		list->index = NONE;
	else if (list->parts > 1 && list->n > dots)
		sort(list->entries + dots, list->n - dots);
	return r;
}

/* The kernel keeps the names of links, and mostly asks for none of them. */
static bool is_read_later(const struct bid_dirlist *list)
{
	return list->parts > 1 || list->node.type == BID_NODE_LINKS_FAN;
}

int bid_dirlist_open(const struct bid_tree *tree, const struct bid_node *node, uint64_t number, struct bid_dirlist **ret_list)
{
	struct bid_dirlist *list = calloc(1, sizeof(*list));
	int r = list ? bid_node_copy(node, &list->node) : -ENOMEM;

	if (r < 0) {
		free(list);
		return r;
	}
	list->tree = tree;
	list->number = number;
	list->parts = bid_tree_parts(node);
	list->index = NONE;
	if (!is_read_later(list))
		r = read_part(list, 0);
	if (r < 0) {
		bid_dirlist_close(list);
		return r;
	}
	*ret_list = list;
	return 0;
}

/* Go to the first entry at or behind @offset, or to the end of the part. */
static void find(struct bid_dirlist *list, uint64_t offset)
{
	size_t low = 0, high = list->n;

	/* most listings go on where they stopped */
	if ((list->at == 0 || list->entries[list->at - 1].offset < offset) &&
	    (list->at == list->n || list->entries[list->at].offset >= offset))
		return;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->entries[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	list->at = low;
}

int bid_dirlist_at(struct bid_dirlist *list, uint64_t offset, struct bid_dirname *ret_name)
{
	uint64_t index = list->parts > 1 && offset > DOTS ? (offset - DOTS) >> PART_BITS : 0;
	/* rewinddir(3) is to show what is there now */
	bool anew = offset == 0 && list->begun;

	list->begun = true;
	for (; index < list->parts; index++) {
		const struct entry *entry;

		if (list->index != (int)index || anew) {
			int r = read_part(list, (unsigned)index);

			if (r < 0)
				return r;
		}
		anew = false;
		find(list, offset);
		if (list->at == list->n)
			continue;
		entry = &list->entries[list->at++];
		*ret_name = (struct bid_dirname){ .number = entry->number,
						  .next = entry->offset + 1,
						  .format = entry->format,
						  .name = list->names + entry->name };
		return 1;
	}
	return 0;
}

void bid_dirlist_close(struct bid_dirlist *list)
{
	bid_node_release(&list->node);
	free(list->entries);
	free(list->names);
	free(list);
}
