// SPDX-License-Identifier: LGPL-2.1-or-later
#include "dirlist.h"

#include <errno.h>
#include <stdlib.h>

#include "dirahead.h"

enum { NONE = -1 };

struct bid_dirlist {
	struct bid_dirlist *next, **link; /* of bid_dirlists; .link is what points here */
	struct bid_node node; /* owned */
	struct bid_dirahead *ahead; /* owned */
	unsigned parts;
	int index; /* of the part that is listed, or NONE */
	const struct bid_dirpart *part; /* ahead's */
	bool begun; /* names were asked for */
	size_t at; /* the entry that is probably next */
};

static int take(struct bid_dirlist *list, unsigned index, bool anew)
{
	int r;

	list->index = NONE;
	list->at = 0;
	r = bid_dirahead_take(list->ahead, index, anew, &list->part);
	if (r == 0)
		list->index = (int)index;
	return r;
}

static void free_list(struct bid_dirlist *list)
{
	bid_dirahead_free(list->ahead);
	bid_node_release(&list->node);
	free(list);
}

static void enter(struct bid_dirlists *lists, struct bid_dirlist *list)
{
	pthread_mutex_lock(&lists->lock);
	list->next = lists->first;
	list->link = &lists->first;
	if (list->next)
		list->next->link = &list->next;
	lists->first = list;
	pthread_mutex_unlock(&lists->lock);
}

/* What has many parts is read one by one, and what the kernel keeps is mostly not asked for at all. */
static bool is_read_later(const struct bid_dirlist *list)
{
	return list->parts > 1 || list->node.type == BID_NODE_LINKS_FAN;
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
	list->parts = bid_tree_parts(node);
	list->index = NONE;
	r = bid_dirahead_new(tree, &list->node, number, &lists->threads, &list->ahead);
	if (r == 0 && !is_read_later(list))
		r = take(list, 0, false);
	if (r < 0) {
		free_list(list);
		return r;
	}
	enter(lists, list);
	*ret_list = list;
	return 0;
}

int bid_dirlist_at(struct bid_dirlist *list, uint64_t offset, struct bid_dirname *ret_name)
{
	uint64_t index = list->parts > 1 ? bid_dirpart_of(offset) : 0;
	/* rewinddir(3) is to show what is there now */
	bool anew = offset == 0 && list->begun;

	list->begun = true;
	for (; index < list->parts; index++) {
		const struct bid_direntry *entry;

		if (list->index != (int)index || anew) {
			int r = take(list, (unsigned)index, anew);

			if (r < 0)
				return r;
		}
		anew = false;
		list->at = bid_dirpart_find(list->part, offset, list->at);
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

void bid_dirlist_close(struct bid_dirlists *lists, struct bid_dirlist *list)
{
	pthread_mutex_lock(&lists->lock);
	*list->link = list->next;
	if (list->next)
		list->next->link = list->link;
	pthread_mutex_unlock(&lists->lock);
	/* not with the lock held: it waits for what is being read */
	free_list(list);
}

void bid_dirlists_close_all(struct bid_dirlists *lists)
{
	while (lists->first)
		bid_dirlist_close(lists, lists->first);
}
