// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/dirlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/thread.h"
#include "vfs/inode.h"

enum {
	DOTS = 2, /* "." and ".."; they precede all parts */
	PART_BITS = 47, /* hash bits of an inode number, see inode.h */
	SLOTS = 8, /* parts in memory of a listing with a thread */
	MANY = 16, /* names of a part that are worth a thread */
};

struct dirlist_entry {
	uint64_t number;
	uint64_t offset; /* ascending */
	uint32_t name; /* offset in names */
	mode_t format; /* S_IFDIR, S_IFLNK or S_IFREG */
};

/* A part of a listing, sorted by offset. */
struct dirlist_part {
	enum { EMPTY = 0, BUSY, READY } state;
	unsigned index; /* valid in a READY or BUSY part */
	int error; /* result of reading a READY part */
	/* a BUSY part belongs to its reader from here on */
	struct dirlist_entry *entries; /* owned */
	size_t n, room;
	char *names; /* NUL-terminated each; owned */
	size_t names_len, names_room;
};

struct bid_dirlist {
	struct bid_dirlists *lists; /* borrowed */
	const struct bid_tree *tree; /* borrowed */
	struct bid_node node; /* owned */
	uint64_t number;
	unsigned n_parts;
	bool begun; /* the first name was requested */
	const struct dirlist_part *part; /* part at the current position, or NULL */
	size_t at; /* likely next entry in @part */
	/* guarded by lists->lock */
	bool has_thread, closed;
	unsigned current; /* index of @part; the thread reads the parts behind it */
	struct dirlist_part parts[SLOTS]; /* part i is in slot i % SLOTS, or without a thread in slot 0 */
};

/* A read of one part. */
struct part_reading {
	const struct bid_dirlist *list;
	struct dirlist_part *part;
};

static uint64_t begin_of(unsigned index)
{
	return DOTS + ((uint64_t)index << PART_BITS);
}

static int add_entry(struct dirlist_part *part, const char *name, uint64_t number, mode_t format, uint64_t offset)
{
	size_t len = strlen(name) + 1;

	if (part->names_len + len > UINT32_MAX || bid_array_grow(part->entries, part->n, part->room) < 0 ||
	    bid_array_reserve(part->names, part->names_len, len, part->names_room) < 0)
		return -ENOMEM;
	part->entries[part->n++] =
		(struct dirlist_entry){ .number = number, .offset = offset, .format = format, .name = (uint32_t)part->names_len };
	memcpy(part->names + part->names_len, name, len);
	part->names_len += len;
	return 0;
}

/* bid_tree_fn. A directory of one part numbers its entries. */
static int add_node(void *user, const char *name, const struct bid_node *node)
{
	const struct part_reading *reading = user;
	uint64_t number = bid_inode_number(node), offset = reading->part->n;

	if (reading->list->n_parts > 1)
		offset = begin_of(reading->part->index) + (number & ((1ULL << PART_BITS) - 1));
	return add_entry(reading->part, name, number, bid_node_format(node), offset);
}

static int compare_offsets(const void *a, const void *b)
{
	const struct dirlist_entry *one = a, *other = b;

	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	return (one->name > other->name) - (one->name < other->name);
}

/* Sort by offset, and move equal offsets, of two names with one number, apart. */
static void sort_entries(struct dirlist_entry *entries, size_t n)
{
	qsort(entries, n, sizeof(*entries), compare_offsets);
	for (size_t i = 1; i < n; i++)
		if (entries[i].offset <= entries[i - 1].offset)
			entries[i].offset = entries[i - 1].offset + 1;
}

/* Read the names of @part, which is BUSY. Part 0 begins with the dots. */
static int read_names(const struct bid_dirlist *list, struct dirlist_part *part)
{
	struct part_reading reading = { .list = list, .part = part };
	size_t dots = part->index == 0 ? DOTS : 0;
	int r = 0;

	part->n = part->names_len = 0;
	if (dots)
		r = add_entry(part, ".", list->number, S_IFDIR, 0);
	if (r == 0 && dots)
		r = add_entry(part, "..", BID_INODE_ROOT, S_IFDIR, 1); /* the kernel replaces the number */
	if (r == 0)
		r = bid_tree_list(list->tree, &list->node, part->index, add_node, &reading);
	if (r == 0 && list->n_parts > 1 && part->n > dots)
		sort_entries(part->entries + dots, part->n - dots);
	return r;
}

/* Locking: the functions from here to read_ahead() need lists->lock. */

static struct dirlist_part *part_of(struct bid_dirlist *list, unsigned index)
{
	return &list->parts[list->has_thread ? index % SLOTS : 0];
}

static bool has_part(const struct dirlist_part *part, unsigned index)
{
	return part->state == READY && part->index == index;
}

/* Read part @index. Unlocks meanwhile. */
static void read_part(struct bid_dirlist *list, unsigned index)
{
	struct dirlist_part *part = part_of(list, index);
	int r;

	part->state = BUSY;
	part->index = index;
	pthread_mutex_unlock(&list->lists->lock);
	r = read_names(list, part);
	pthread_mutex_lock(&list->lists->lock);
	part->error = r;
	part->state = READY;
	pthread_cond_broadcast(&list->lists->changed);
}

/*
 * Read the next part behind the current one that nobody reads. False without one, or without a slot: the part before the current
 * one stays, because a reader with a small buffer returns to its last names.
 */
static bool read_next(struct bid_dirlist *list)
{
	for (unsigned i = list->current + 1; i < list->n_parts && i < list->current + SLOTS - 1; i++) {
		const struct dirlist_part *part = part_of(list, i);

		if (part->state == BUSY || has_part(part, i))
			continue;
		read_part(list, i);
		return true;
	}
	return false;
}

static void *read_ahead(void *user)
{
	struct bid_dirlist *list = user;
	struct bid_dirlists *lists = list->lists;

	pthread_detach(pthread_self());
	pthread_mutex_lock(&lists->lock);
	while (!list->closed && !lists->ended)
		if (!read_next(list))
			pthread_cond_wait(&lists->changed, &lists->lock);
	list->has_thread = false;
	lists->threads--;
	pthread_cond_broadcast(&lists->changed);
	pthread_mutex_unlock(&lists->lock);
	return NULL;
}

/* Start the thread. Locking: lists->lock. Without a thread the caller reads. */
static void start_thread(struct bid_dirlist *list)
{
	pthread_t thread;

	if (list->has_thread || list->lists->ended || list->lists->threads >= BID_DIRLIST_THREADS)
		return;
	list->has_thread = bid_thread_start(&thread, "bid-list", read_ahead, list) == 0;
	list->lists->threads += list->has_thread;
}

/* Locking: lists->lock. */
static void drop_parts(struct bid_dirlist *list)
{
	list->current = list->n_parts; /* nothing to read ahead */
	for (size_t i = 0; i < SLOTS; i++) {
		while (list->parts[i].state == BUSY)
			pthread_cond_wait(&list->lists->changed, &list->lists->lock);
		list->parts[i].state = EMPTY;
	}
}

/* Make part @index the current one. @anew: drop the parts in memory first. */
static int go_to_part(struct bid_dirlist *list, unsigned index, bool anew)
{
	struct dirlist_part *part;
	bool tried = false;

	pthread_mutex_lock(&list->lists->lock);
	/* NFS jumps to an offset, and then elsewhere */
	if (list->part && list->part->n >= MANY && index == list->current + 1)
		start_thread(list);
	if (anew)
		drop_parts(list);
	list->part = NULL;
	list->at = 0;
	list->current = index;
	if (list->has_thread)
		pthread_cond_broadcast(&list->lists->changed);
	part = part_of(list, index);
	/* repeat a failed read of the thread once */
	while (!has_part(part, index) || (part->error < 0 && !tried)) {
		if (part->state != BUSY) {
			read_part(list, index);
			tried = true;
		} else if (!read_next(list)) { /* busy reading another part beats waiting for the thread */
			pthread_cond_wait(&list->lists->changed, &list->lists->lock);
		}
	}
	if (part->error == 0)
		list->part = part;
	pthread_mutex_unlock(&list->lists->lock);
	return part->error;
}

/* Is the first read later than the open? The kernel keeps listings of links, and rarely needs the names. */
static bool is_read_later(const struct bid_dirlist *list)
{
	return list->n_parts > 1 || list->node.type == BID_NODE_LINKS_FANOUT;
}

int bid_dirlist_open(struct bid_dirlists *lists, const struct bid_tree *tree, const struct bid_node *node, uint64_t number,
		     struct bid_dirlist **ret_list)
{
	struct bid_dirlist *list = calloc(1, sizeof(*list));
	int r = list ? bid_node_copy(node, &list->node) : -ENOMEM;

	if (r < 0) {
		free(list);
		return r;
	}
	list->lists = lists;
	list->tree = tree;
	list->number = number;
	list->n_parts = bid_tree_parts(node);
	if (!is_read_later(list))
		r = go_to_part(list, 0, false);
	if (r < 0) {
		bid_dirlist_close(list);
		return r;
	}
	*ret_list = list;
	return 0;
}

/* Go to the first entry at or behind @offset, or to the end of the part. */
static void find_entry(struct bid_dirlist *list, uint64_t offset)
{
	const struct dirlist_part *part = list->part;
	size_t low = 0, high = part->n;

	/* most listings continue */
	if ((list->at == 0 || part->entries[list->at - 1].offset < offset) &&
	    (list->at == part->n || part->entries[list->at].offset >= offset))
		return;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (part->entries[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	list->at = low;
}

int bid_dirlist_at(struct bid_dirlist *list, uint64_t offset, struct bid_dirname *ret_name)
{
	uint64_t index = list->n_parts > 1 && offset > DOTS ? (offset - DOTS) >> PART_BITS : 0;
	/* rewinddir(3) shows the current names */
	bool anew = offset == 0 && list->begun;

	list->begun = true;
	for (; index < list->n_parts; index++) {
		const struct dirlist_entry *entry;

		if (!list->part || list->current != index || anew) {
			int r = go_to_part(list, (unsigned)index, anew);

			if (r < 0)
				return r;
		}
		anew = false;
		find_entry(list, offset);
		if (list->at == list->part->n)
			continue;
		entry = &list->part->entries[list->at++];
		*ret_name = (struct bid_dirname){ .number = entry->number,
						  .next = entry->offset + 1,
						  .format = entry->format,
						  .name = list->part->names + entry->name };
		return 1;
	}
	return 0;
}

void bid_dirlist_close(struct bid_dirlist *list)
{
	struct bid_dirlists *lists = list->lists;

	pthread_mutex_lock(&lists->lock);
	list->closed = true;
	if (list->has_thread)
		pthread_cond_broadcast(&lists->changed);
	while (list->has_thread)
		pthread_cond_wait(&lists->changed, &lists->lock);
	pthread_mutex_unlock(&lists->lock);
	for (size_t i = 0; i < SLOTS; i++) {
		free(list->parts[i].entries);
		free(list->parts[i].names);
	}
	bid_node_release(&list->node);
	free(list);
}

void bid_dirlists_end(struct bid_dirlists *lists)
{
	pthread_mutex_lock(&lists->lock);
	lists->ended = true;
	pthread_cond_broadcast(&lists->changed);
	while (lists->threads > 0)
		pthread_cond_wait(&lists->changed, &lists->lock);
	pthread_mutex_unlock(&lists->lock);
}
