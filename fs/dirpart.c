// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dirpart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "inode.h"

enum { FEW = 8 }; /* entries that are sorted by hand */

/* What is being read. */
struct reading {
	struct bid_dirpart *part;
	uint64_t begin; /* offset at which it begins */
	bool counted; /* the offsets are, and are not made of numbers */
};

static int add(struct bid_dirpart *part, const char *name, uint64_t number, mode_t format, uint64_t offset)
{
	size_t len = strlen(name) + 1;

	if (part->names_len + len > UINT32_MAX || bid_array_grow(part->entries, part->n, part->room) < 0 ||
	    bid_array_reserve(part->names, part->names_len, len, part->names_room) < 0)
		return -ENOMEM;
	part->entries[part->n++] =
		(struct bid_direntry){ .number = number, .offset = offset, .format = format, .name = (uint32_t)part->names_len };
	memcpy(part->names + part->names_len, name, len);
	part->names_len += len;
	return 0;
}

static int add_node(void *user, const char *name, const struct bid_node *node)
{
	const struct reading *reading = user;
	uint64_t number = bid_inode_number(node), offset = reading->part->n;

	if (!reading->counted)
		offset = reading->begin + (number & ((1ULL << BID_DIRPART_BITS) - 1));
	return add(reading->part, name, number, bid_node_format(node), offset);
}

static int compare(const void *a, const void *b)
{
	const struct bid_direntry *one = a, *other = b;

	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	return (one->name > other->name) - (one->name < other->name);
}

/* On which of @n shelves an entry is put, by the upper bits of its offset: these are a hash, so there are one or two on most. */
static size_t shelf_of(const struct bid_direntry *entry, uint64_t begin, size_t n)
{
	return ((entry->offset - begin) >> (BID_DIRPART_BITS - 31)) * n >> 31; /* n is below 2^32 */
}

/* By shelf. Whoever makes ids that all go to one shelf has that sorted by qsort(3). -ENOMEM. */
static int sort_roughly(struct bid_direntry *entries, size_t n, uint64_t begin)
{
	bid_auto_free uint32_t *ends = calloc(n + 1, sizeof(*ends));
	bid_auto_free struct bid_direntry *copy = reallocarray(NULL, n, sizeof(*copy));

	if (!ends || !copy)
		return -ENOMEM;
	memcpy(copy, entries, n * sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		ends[shelf_of(&copy[i], begin, n)]++;
	for (size_t i = 1; i < n; i++)
		ends[i] += ends[i - 1];
	ends[n] = (uint32_t)n;
	for (size_t i = n; i-- > 0;)
		entries[--ends[shelf_of(&copy[i], begin, n)]] = copy[i];
	/* now they are where each shelf begins */
	for (size_t i = 0; i < n; i++)
		if (ends[i + 1] - ends[i] > FEW)
			qsort(entries + ends[i], ends[i + 1] - ends[i], sizeof(*entries), compare);
	return 0;
}

/* By offset. Two names of one number, of which there are none in most stores, stand one behind the other. */
static int sort(struct bid_direntry *entries, size_t n, uint64_t begin)
{
	int r = n > 0 ? sort_roughly(entries, n, begin) : 0;

	for (size_t i = 1; r == 0 && i < n; i++) {
		struct bid_direntry entry = entries[i];
		size_t to = i;

		for (; to > 0 && compare(&entries[to - 1], &entry) > 0; to--)
			entries[to] = entries[to - 1];
		entries[to] = entry;
	}
	for (size_t i = 1; i < n; i++)
		if (entries[i].offset <= entries[i - 1].offset)
			entries[i].offset = entries[i - 1].offset + 1;
	return r;
}

int bid_dirpart_read(struct bid_dirpart *part, const struct bid_tree *tree, const struct bid_node *dir, uint64_t number,
		     unsigned index)
{
	struct reading reading = {
		.part = part,
		.begin = BID_DIRPART_DOTS + ((uint64_t)index << BID_DIRPART_BITS),
		.counted = bid_tree_parts(dir) == 1,
	};
	size_t dots = index == 0 ? BID_DIRPART_DOTS : 0;
	int r = 0;

	part->n = part->names_len = 0;
	if (index == 0)
		r = add(part, ".", number, S_IFDIR, 0);
	if (r == 0 && index == 0)
		r = add(part, "..", BID_INODE_ROOT, S_IFDIR, 1); /* the kernel knows better and tells the truth */
	if (r == 0)
		r = bid_tree_list(tree, dir, index, add_node, &reading);
	if (r == 0 && !reading.counted)
		r = sort(part->entries + dots, part->n - dots, reading.begin);
	if (r < 0)
		part->n = part->names_len = 0;
	return r;
}

size_t bid_dirpart_find(const struct bid_dirpart *part, uint64_t offset, size_t guess)
{
	size_t low = 0, high = part->n;

	/* most go on where they stopped */
	if (guess <= part->n && (guess == 0 || part->entries[guess - 1].offset < offset) &&
	    (guess == part->n || part->entries[guess].offset >= offset))
		return guess;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (part->entries[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void bid_dirpart_release(struct bid_dirpart *part)
{
	free(part->entries);
	free(part->names);
	*part = (struct bid_dirpart){ 0 };
}
