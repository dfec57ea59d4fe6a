// SPDX-License-Identifier: LGPL-2.1-or-later
/* A new pack of a store, and what becomes of those that are there. */
#include "disk/pack/packs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/trouble.h"
#include "disk/layout.h"
#include "disk/pack/packs_list.h"
#include "disk/publish/temp.h"
#include "disk/root.h"
#include "disk/store.h"
#include "disk/verify/aside.h"

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

/*
 * Open the directory of packs, and lock it: who merges may not bring back what somebody else leaves out meanwhile. *@ret_locked
 * says whether it is, which with LOCK_NB it is not while somebody else merges, and never where the file system knows no locks.
 */
static int open_locked(struct bid_store *store, int operation, int *ret_dir, bool *ret_locked)
{
	int r = bid_root_mkdirs(bid_store_root(store), BID_LAYOUT_PACKS, false, ret_dir);

	if (r < 0)
		return r;
	do
		*ret_locked = flock(*ret_dir, operation) == 0;
	while (!*ret_locked && errno == EINTR);
	return 0;
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
	bid_auto_fd int dir = -1;
	size_t n_merged = 0;
	bool locked;
	int r = open_locked(store, LOCK_EX | LOCK_NB, &dir, &locked);

	if (r < 0)
		return r;
	/* who comes after the one that merges now takes this along */
	if (locked || errno != EWOULDBLOCK)
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

int bid_packs_hold(struct bid_store *store, int *ret_hold)
{
	bid_auto_fd int dir = -1;
	bool locked;
	int r = open_locked(store, LOCK_EX, &dir, &locked);

	if (r < 0)
		return r;
	if (!locked || bid_temp_is_shared(dir))
		return -EOPNOTSUPP;
	*ret_hold = bid_steal_fd(&dir);
	return 0;
}

int bid_packs_rewrite(struct bid_store *store, int hold, const struct bid_pack_amender *amender)
{
	bid_auto_packs struct bid_packs_list *list = bid_packs_list(store);
	int r = list && list->n > 0 ? merge(store, hold, NULL, 0, list->packs, list->n, amender) : 0;

	/* also that those are gone which were left out */
	return r == 0 && fsync(hold) < 0 ? -errno : r;
}

int bid_packs_mend(struct bid_store *store, const char *name)
{
	struct bid_packs_held damaged = { .pack = BID_PACK_NONE }, *packs = &damaged;
	bid_auto_free struct bid_pack_item *items = NULL;
	bid_auto_fd int dir = -1, fd = -1;
	bool locked;
	int r = open_locked(store, LOCK_EX, &dir, &locked);

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
