// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dirlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inode.h"

enum {
	DOTS = 2, /* "." and "..", which are before all parts */
	PART_BITS = 47, /* of the numbers in one part: see inode.h */
	NONE = -1,
};

struct entry {
	uint64_t number;
	uint64_t offset; /* at which it is found; ascending */
	uint32_t name; /* where it begins in names */
	mode_t format;
};

struct bid_dirlist {
	const struct bid_tree *tree; /* borrowed */
	struct bid_node node; /* owned */
	uint64_t number;
	unsigned parts;
	int part; /* what is in memory, or NONE */
	struct entry *entries; /* owned */
	size_t n, room;
	size_t at; /* the one that is probably next, at most n */
	char *names; /* NUL-terminated each; owned */
	size_t names_len, names_room;
};

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

/* The offset at which a part begins. */
static uint64_t begin_of(unsigned part)
{
	return DOTS + ((uint64_t)part << PART_BITS);
}

static int add_node(void *user, const char *name, const struct bid_node *node)
{
	struct bid_dirlist *list = user;
	uint64_t number = bid_inode_number(node), offset = list->n;

	if (list->parts > 1)
		offset = begin_of((unsigned)list->part) + (number & ((1ULL << PART_BITS) - 1));
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
static void sort(struct bid_dirlist *list)
{
	qsort(list->entries, list->n, sizeof(*list->entries), compare);
	for (size_t i = 1; i < list->n; i++)
		if (list->entries[i].offset <= list->entries[i - 1].offset)
			list->entries[i].offset = list->entries[i - 1].offset + 1;
}

static int load(struct bid_dirlist *list, unsigned part)
{
	int r = 0;

	list->n = list->at = 0;
	list->names_len = 0;
	list->part = (int)part;
	if (part == 0)
		r = add(list, ".", list->number, S_IFDIR, 0);
	if (r == 0 && part == 0)
		r = add(list, "..", BID_INODE_ROOT, S_IFDIR, 1); /* the kernel knows better and tells the truth */
	if (r == 0)
		r = bid_tree_list_part(list->tree, &list->node, part, add_node, list);
	if (r < 0)
		list->part = NONE;
	else if (list->parts > 1)
		sort(list);
	return r;
}

int bid_dirlist_new(const struct bid_tree *tree, const struct bid_node *node, uint64_t number, struct bid_dirlist **ret_list)
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
	list->part = NONE;
	if (list->parts == 1)
		r = load(list, 0);
	if (r < 0) {
		bid_dirlist_free(list);
		return r;
	}
	*ret_list = list;
	return 0;
}

/* The index of the first entry at or behind @offset. */
static size_t search(const struct bid_dirlist *list, uint64_t offset)
{
	size_t low = 0, high = list->n;

	/* most go on where they stopped */
	if ((list->at == 0 || list->entries[list->at - 1].offset < offset) &&
	    (list->at == list->n || list->entries[list->at].offset >= offset))
		return list->at;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->entries[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int bid_dirlist_at(struct bid_dirlist *list, uint64_t offset, struct bid_dirname *ret_name)
{
	uint64_t part = list->parts > 1 && offset >= DOTS ? (offset - DOTS) >> PART_BITS : 0;

	for (; part < list->parts; part++) {
		const struct entry *entry;
		size_t i;

		if (list->part != (int)part) {
			int r = load(list, (unsigned)part);

			if (r < 0)
				return r;
		}
		i = search(list, offset);
		if (i == list->n)
			continue;
		entry = &list->entries[i];
		list->at = i + 1;
		*ret_name = (struct bid_dirname){ .number = entry->number,
						  .next = entry->offset + 1,
						  .format = entry->format,
						  .name = list->names + entry->name };
		return 1;
	}
	return 0;
}

void bid_dirlist_free(struct bid_dirlist *list)
{
	if (!list)
		return;
	bid_node_release(&list->node);
	free(list->entries);
	free(list->names);
	free(list);
}
