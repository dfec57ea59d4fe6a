// SPDX-License-Identifier: LGPL-2.1-or-later
/* A new pack of a store, and what becomes of those that are there. */
#include "disk/pack/packs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/trouble.h"
#include "disk/aside.h"
#include "disk/layout.h"
#include "disk/pack/packs_list.h"
#include "disk/publish/temp.h"
#include "disk/root.h"
#include "disk/store.h"

enum {
	GROWTH = 2, /* how many times as many records a pack has at least than all smaller ones together */
	TRIES = 16, /* to find a name that nothing has */
};

static int by_number(const void *a, const void *b)
{
	const struct bid_packs_held *const *one = a, *const *other = b;

	return ((*one)->pack.n > (*other)->pack.n) - ((*one)->pack.n < (*other)->pack.n);
}

/* How many of the packs, the smallest first, go into a new one of @n records. */
static size_t choose(struct bid_packs_held **packs, size_t n_packs, uint64_t n)
{
	size_t chosen = 0;

	if (n_packs > 0)
		qsort(packs, n_packs, sizeof(*packs), by_number);
	for (; chosen < n_packs && packs[chosen]->pack.n < GROWTH * n; chosen++)
		n += packs[chosen]->pack.n;
	return chosen;
}

/* Give @temp a name in @dir. */
static int publish(struct bid_temp *temp, int dir)
{
	int r = -EEXIST;

	if (fchmod(temp->fd, 0644) < 0)
		return -errno;
	for (int i = 0; i < TRIES && r == -EEXIST; i++) {
		char name[BID_PACKS_NAME];
		uint64_t number;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		snprintf(name, sizeof(name), "%016llx", (unsigned long long)number);
		r = bid_temp_link(temp, dir, name);
	}
	return r;
}

static int open_packs(struct bid_store *store, int *ret_dir)
{
	return bid_root_mkdirs(bid_store_root(store), BID_LAYOUT_PACKS, false, ret_dir);
}

/* Who merges may not bring back what somebody else leaves out meanwhile; where the file system knows no locks, nobody does. */
static int hold_to_merge(struct bid_store *store, int wait_ms, int *ret_hold)
{
	int r = bid_packs_hold(store, wait_ms, ret_hold);

	return r == -EOPNOTSUPP ? 0 : r;
}

/* Write @items to @dir, and with them the first @n_merged of @packs, which go then. */
static int write_merged(struct bid_store *store, int dir, struct bid_pack_item *items, size_t n, struct bid_packs_held **packs,
			size_t n_merged, const struct bid_pack_amender *amender)
{
	bid_cleanup(bid_temp_release) struct bid_temp temp = BID_TEMP_NONE;
	int64_t written = 0;
	int r;

	for (size_t i = 0; i < n_merged; i++) {
		r = bid_pack_items(&packs[i]->pack, (unsigned)i + 1, items + n);
		if (r < 0)
			return r;
		n += packs[i]->pack.n;
	}
	r = bid_temp_new(store, false, &temp);
	if (r == 0) {
		written = bid_pack_write(temp.fd, items, n, amender);
		r = written < 0 ? (int)written : 0;
	}
	/* what goes is on disk, and so must be what comes */
	if (r == 0 && n_merged > 0 && fsync(temp.fd) < 0)
		r = -errno;
	if (r == 0 && written > 0)
		r = publish(&temp, dir);
	if (r == 0 && n_merged > 0 && fsync(dir) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < n_merged; i++)
		unlinkat(dir, packs[i]->name, 0);
	return r;
}

/* The same with room for all that the first @n_merged of @packs have. */
static int merge(struct bid_store *store, int dir, const struct bid_pack_item *items, size_t n, struct bid_packs_held **packs,
		 size_t n_merged, const struct bid_pack_amender *amender)
{
	bid_auto_free struct bid_pack_item *all = NULL;
	size_t total = n;

	for (size_t i = 0; i < n_merged; i++)
		total += packs[i]->pack.n;
	all = calloc(total + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	if (n > 0)
		memcpy(all, items, n * sizeof(*all));
	return write_merged(store, dir, all, n, packs, n_merged, amender);
}

int bid_packs_add(struct bid_store *store, struct bid_pack_item *items, size_t n)
{
	bid_auto_packs struct bid_packs_list *list = NULL;
	bid_auto_free struct bid_packs_held **packs = NULL;
	bid_auto_fd int dir = -1, hold = -1;
	size_t n_merged = 0;
	int r = open_packs(store, &dir);

	if (r < 0)
		return r;
	/* who comes after the one that merges now, or may lock, takes this along */
	if (hold_to_merge(store, 0, &hold) == 0)
		list = bid_packs_list(store);
	packs = calloc(list ? list->n + 1 : 1, sizeof(struct bid_packs_held *));
	if (!packs)
		return -ENOMEM;
	if (list && list->n > 0) {
		memcpy(packs, list->packs, list->n * sizeof(struct bid_packs_held *));
		n_merged = choose(packs, list->n, n);
	}
	r = merge(store, dir, items, n, packs, n_merged, NULL);
	/* as it is, then: what cannot be read may not be in the way of what is new */
	return r < 0 && n_merged > 0 ? write_merged(store, dir, items, n, NULL, 0, NULL) : r;
}

int bid_packs_rewrite(struct bid_store *store, const struct bid_pack_amender *amender)
{
	bid_auto_packs struct bid_packs_list *list = bid_packs_list(store);
	bid_auto_fd int dir = -1;
	int r = open_packs(store, &dir);

	if (r == 0 && list && list->n > 0)
		r = merge(store, dir, NULL, 0, list->packs, list->n, amender);
	/* also that those are gone which were left out */
	return r == 0 && fsync(dir) < 0 ? -errno : r;
}

int bid_packs_mend(struct bid_store *store, const char *name)
{
	struct bid_packs_held damaged = { .pack = BID_PACK_NONE }, *packs = &damaged;
	bid_auto_free struct bid_pack_item *items = NULL;
	bid_auto_fd int dir = -1, hold = -1, fd = -1;
	int r = open_packs(store, &dir);

	if (r == 0)
		r = hold_to_merge(store, BID_PACKS_WAIT_MS, &hold);
	if (r < 0)
		return r;
	snprintf(damaged.name, sizeof(damaged.name), "%s", name);
	r = bid_root_open(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
	if (r == 0)
		r = bid_pack_open(fd, &damaged.pack);
	if (r == 0)
		items = calloc(damaged.pack.n + 1, sizeof(*items));
	if (r == 0)
		r = items ? write_merged(store, dir, items, 0, &packs, 1, NULL) : -ENOMEM;
	if (r == -EPROTONOSUPPORT || bid_is_trouble(r))
		return r;
	/* nothing of it can be read */
	if (r < 0)
		return unlinkat(dir, name, 0) == 0 || bid_aside_clear(store, dir, name) == 0 ? 0 : -errno;
	return 0;
}
