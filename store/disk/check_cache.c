// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/check_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "api/elf.h"
#include "base/stat_data.h"

enum { SLOTS = 1 << 14 };

struct check_cache_entry {
	struct bid_stat_data stat_data; /* ino 0: free */
	bool examined; /* has_dwarf and the like were looked for */
	bool logged; /* the log has the refusal */
	unsigned underivable; /* bits of kinds */
	struct bid_check check;
};

struct bid_check_cache {
	pthread_mutex_t lock; /* protects all below; not held while a file is read */
	struct check_cache_entry slots[SLOTS]; /* by inode; a file takes the slot of another one */
};

int bid_check_cache_new(struct bid_check_cache **ret_cache)
{
	/* calloc: pages of entries never used are never touched */
	struct bid_check_cache *check_cache = calloc(1, sizeof(*check_cache));

	if (!check_cache)
		return -ENOMEM;
	pthread_mutex_init(&check_cache->lock, NULL);
	*ret_cache = check_cache;
	return 0;
}

void bid_check_cache_free(struct bid_check_cache *check_cache)
{
	if (!check_cache)
		return;
	pthread_mutex_destroy(&check_cache->lock);
	free(check_cache);
}

/* The slot of the file with @st. */
static struct check_cache_entry *slot_of(struct bid_check_cache *check_cache, const struct stat *st)
{
	uint64_t hash = ((uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 32) * 0x9e3779b97f4a7c15U;

	return &check_cache->slots[hash >> 32 & (SLOTS - 1)];
}

static bool recall_check(struct bid_check_cache *check_cache, const struct stat *st, bool want_dwarf, struct bid_check *ret_check)
{
	const struct check_cache_entry *slot = slot_of(check_cache, st);
	bool found;

	pthread_mutex_lock(&check_cache->lock);
	found = bid_stat_data_is_current(&slot->stat_data, st) && (slot->examined || !want_dwarf);
	if (found)
		*ret_check = slot->check;
	pthread_mutex_unlock(&check_cache->lock);
	return found;
}

/* Cache the check of the file with @st; @stat_data was taken before the file was read. */
static void keep_check(struct bid_check_cache *check_cache, const struct stat *st, const struct bid_stat_data *stat_data,
		       bool examined, const struct bid_check *check)
{
	struct check_cache_entry *slot = slot_of(check_cache, st);
	bool same;

	pthread_mutex_lock(&check_cache->lock);
	same = bid_stat_data_matches(&slot->stat_data, st);
	*slot = (struct check_cache_entry){
		.stat_data = *stat_data,
		.examined = examined,
		.logged = same && slot->logged,
		.underivable = same ? slot->underivable : 0,
		.check = *check,
	};
	pthread_mutex_unlock(&check_cache->lock);
}

int bid_check_cache_get(struct bid_check_cache *check_cache, int fd, const struct stat *st, bool want_dwarf,
			struct bid_check *ret_check)
{
	struct bid_stat_data stat_data = bid_stat_data_of(st);
	struct bid_check check = { 0 };
	struct bid_elf_info info;
	int r;

	if (recall_check(check_cache, st, want_dwarf, ret_check))
		return 0;

	r = bid_elf_build_id(fd, &check.id);
	if (r == -ENOEXEC) {
		r = bid_elf_is_packed(fd);
		if (r < 0)
			return r;
		check.packed = r;
	} else if (r < 0 && r != -ENODATA) {
		return r;
	} else if (want_dwarf) {
		r = bid_elf_examine(fd, &info);
		/* an unreadable file may have an id */
		if (r < 0 && r != -EBADMSG && r != -ENOEXEC)
			return r;
		check.has_dwarf = r == 0 && info.has_dwarf;
		check.has_symtab = r == 0 && info.has_symtab;
	}
	keep_check(check_cache, st, &stat_data, want_dwarf, &check);
	*ret_check = check;
	return 0;
}

void bid_check_cache_unpacked(struct bid_check_cache *check_cache, const struct stat *st, int fault, const struct bid_id *id)
{
	struct bid_stat_data stat_data = bid_stat_data_of(st);
	struct bid_check check = { .packed = true, .unpacked = true, .fault = fault < 0 ? fault : 0 };

	if (fault == 0)
		check.id = *id;
	keep_check(check_cache, st, &stat_data, true, &check);
}

bool bid_check_cache_log_once(struct bid_check_cache *check_cache, const struct stat *st)
{
	struct check_cache_entry *slot = slot_of(check_cache, st);
	bool first;

	pthread_mutex_lock(&check_cache->lock);
	first = bid_stat_data_matches(&slot->stat_data, st) && !slot->logged;
	slot->logged |= first;
	pthread_mutex_unlock(&check_cache->lock);
	return first;
}

void bid_check_cache_set_underivable(struct bid_check_cache *check_cache, const struct stat *st, enum bid_kind kind)
{
	struct check_cache_entry *slot = slot_of(check_cache, st);

	pthread_mutex_lock(&check_cache->lock);
	if (bid_stat_data_matches(&slot->stat_data, st))
		slot->underivable |= 1U << kind;
	pthread_mutex_unlock(&check_cache->lock);
}

bool bid_check_cache_is_underivable(struct bid_check_cache *check_cache, const struct stat *st, enum bid_kind kind)
{
	const struct check_cache_entry *slot = slot_of(check_cache, st);
	bool is;

	pthread_mutex_lock(&check_cache->lock);
	is = slot->underivable & 1U << kind && bid_stat_data_is_current(&slot->stat_data, st);
	pthread_mutex_unlock(&check_cache->lock);
	return is;
}
