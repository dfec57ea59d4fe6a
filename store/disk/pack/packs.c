// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/pack/packs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/stamp.h"
#include "disk/layout.h"
#include "disk/pack/packs_list.h"
#include "disk/root.h"
#include "disk/store.h"

enum { TRIES = 16 }; /* to read a directory that changes meanwhile */

struct bid_packs {
	pthread_mutex_t lock; /* protects all below; held while the directory is read, not while a pack is */
	int dir; /* -1 before there is one; owned */
	struct bid_stamp stamp; /* of the directory, when .list was read */
	struct bid_packs_list *list; /* a reference, or NULL */
};

int bid_packs_new(struct bid_packs **ret_packs)
{
	struct bid_packs *packs = calloc(1, sizeof(*packs));

	if (!packs)
		return -ENOMEM;
	packs->dir = -1;
	pthread_mutex_init(&packs->lock, NULL);
	*ret_packs = packs;
	return 0;
}

static void held_unref(struct bid_packs_held *held)
{
	if (atomic_fetch_sub(&held->refs, 1) > 1)
		return;
	bid_pack_release(&held->pack);
	free(held);
}

static void list_unref(struct bid_packs_list *list)
{
	if (!list || atomic_fetch_sub(&list->refs, 1) > 1)
		return;
	for (size_t i = 0; i < list->n; i++)
		held_unref(list->packs[i]);
	free(list->packs);
	free(list);
}

void bid_packs_list_release(struct bid_packs_list **list)
{
	list_unref(*list);
}

void bid_packs_free(struct bid_packs *packs)
{
	if (!packs)
		return;
	list_unref(packs->list);
	bid_close(packs->dir);
	pthread_mutex_destroy(&packs->lock);
	free(packs);
}

bool bid_packs_is_name(const char *name)
{
	return strlen(name) == BID_PACKS_NAME - 1 && strspn(name, "0123456789abcdef") == BID_PACKS_NAME - 1;
}

/* The pack @name, as it is open already or else opened now. */
static int hold(struct bid_packs *packs, const char *name, struct bid_packs_held **ret_held)
{
	struct bid_packs_held *held;
	bid_auto_fd int fd = -1;
	int r;

	for (size_t i = 0; packs->list && i < packs->list->n; i++) {
		if (strcmp(packs->list->packs[i]->name, name) == 0) {
			*ret_held = packs->list->packs[i];
			atomic_fetch_add(&(*ret_held)->refs, 1);
			return 0;
		}
	}
	held = calloc(1, sizeof(*held));
	if (!held)
		return -ENOMEM;
	atomic_init(&held->refs, 1);
	memcpy(held->name, name, sizeof(held->name));
	r = bid_root_open(packs->dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
	if (r == 0)
		r = bid_pack_open(fd, &held->pack);
	if (r < 0) {
		free(held);
		return r;
	}
	bid_steal_fd(&fd);
	*ret_held = held;
	return 0;
}

/*
 * All packs that the directory has now. One that cannot be read as one is passed over; 1 if a name was not there any more, or
 * could not be opened for now. list->whole is set.
 */
static int read_packs(struct bid_packs *packs, struct bid_packs_list *list)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	bool missed = false;
	int r = bid_root_opendir(packs->dir, ".", &dir);

	if (r < 0)
		return r;
	list->whole = true;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		if (!bid_packs_is_name(entry->d_name))
			continue;
		if (bid_array_grow(list->packs, list->n, list->room) < 0)
			return -ENOMEM;
		r = hold(packs, entry->d_name, &list->packs[list->n]);
		list->n += r == 0;
		list->whole = list->whole && r == 0;
		missed = missed || (r < 0 && r != -EBADMSG && r != -EPROTONOSUPPORT);
	}
	return errno != 0 ? -errno : missed;
}

/* Read the directory until it does not change meanwhile: of two packs that become one, either would be missed otherwise. */
static int read_again(struct bid_packs *packs, const struct stat *found)
{
	struct stat before = *found, after;

	for (int i = 0; i < TRIES; i++) {
		bid_auto_packs struct bid_packs_list *list = calloc(1, sizeof(*list));
		struct bid_stamp stamp = bid_stamp_take(&before);
		int r;

		if (!list)
			return -ENOMEM;
		atomic_init(&list->refs, 1);
		r = read_packs(packs, list);
		if (r < 0)
			return r;
		if (fstat(packs->dir, &after) < 0)
			return -errno;
		if (i + 1 == TRIES || (r == 0 && bid_stamp_is_of(&stamp, &after))) {
			packs->stamp = stamp;
			packs->stamp.racy = stamp.racy || r != 0;
			list_unref(packs->list);
			packs->list = bid_steal(list);
			return 0;
		}
		before = after;
	}
	return 0;
}

/* The lock is held. */
static int look(struct bid_store *store, struct bid_packs *packs)
{
	struct stat st;
	int r = 0;

	if (packs->dir >= 0 && (fstat(packs->dir, &st) < 0 || st.st_nlink == 0))
		bid_close(bid_steal_fd(&packs->dir));
	if (packs->dir < 0) {
		list_unref(bid_steal(packs->list));
		r = bid_root_open(bid_store_root(store), BID_LAYOUT_PACKS, O_RDONLY | O_DIRECTORY, &packs->dir);
		if (r == 0 && fstat(packs->dir, &st) < 0)
			r = -errno;
	}
	if (r < 0)
		return r;
	return packs->list && bid_stamp_holds(&packs->stamp, &st) ? 0 : read_again(packs, &st);
}

struct bid_packs_list *bid_packs_list(struct bid_store *store)
{
	struct bid_packs *packs = store->packs;
	struct bid_packs_list *list = NULL;

	pthread_mutex_lock(&packs->lock);
	if (look(store, packs) == 0 && packs->list) {
		list = packs->list;
		atomic_fetch_add(&list->refs, 1);
	}
	pthread_mutex_unlock(&packs->lock);
	return list;
}

static int find_in(const struct bid_pack *pack, const struct bid_pack_key *key, char **ret_text, size_t *ret_len)
{
	struct bid_pack_entry entry;
	int r = bid_pack_find(pack, key, &entry);

	if (r == 0 && ret_text)
		r = bid_pack_read(pack, &entry, ret_text);
	if (r == 0 && ret_len)
		*ret_len = entry.len;
	return r;
}

int bid_packs_find(struct bid_store *store, const struct bid_pack_key *key, char **ret_text, size_t *ret_len)
{
	bid_auto_packs struct bid_packs_list *list = bid_packs_list(store);
	int result = -ENOENT;

	for (size_t i = 0; list && i < list->n; i++) {
		int r = find_in(&list->packs[i]->pack, key, ret_text, ret_len);

		if (r == 0)
			return 0;
		if (r != -ENOENT)
			result = r;
	}
	return result;
}
