// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Enumerate the ids of a store and its lower stores: first each store alone, then the merged view. An id of an earlier store hides
 * the same id of a later one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "api/store.h"
#include "base/cleanup.h"
#include "base/getdents.h"
#include "disk/beneath.h"
#include "disk/foreign_layout.h"
#include "disk/layout.h"
#include "disk/perf_link.h"
#include "disk/store.h"

#define DEBUG_SUFFIX ".debug"

/*
 * Trees of debug files have "rest.debug" beside "rest" or instead of it: cut @hex to the id. Returns false if "rest" exists too,
 * because the enumeration then meets the id there.
 */
static bool strip_suffix(int dir, char *hex)
{
	size_t len = strlen(hex), cut = sizeof(DEBUG_SUFFIX) - 1;

	if (len <= cut || strcmp(hex + len - cut, DEBUG_SUFFIX) != 0)
		return true;
	hex[len - cut] = '\0';
	return faccessat(dir, hex + 2, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

/* bid_store_each_id_in() of one store; in a lower store also the files of foreign layouts below ".build-id/xx". */
static int each_id_of(struct bid_store *store, uint8_t first, bid_store_id_fn fn, void *user)
{
	char path[sizeof(BID_LAYOUT_LINKS) + 4], hex[2 + NAME_MAX + 1];
	bid_auto_fd int dir = -1;
	struct bid_dents dents;
	struct bid_dent *entry;
	int r;

	snprintf(path, sizeof(path), BID_LAYOUT_LINKS "/%02x", first);
	if (bid_store_is_lower(store))
		r = bid_store_open_linked(store, path, O_RDONLY | O_DIRECTORY, &dir);
	else
		r = bid_beneath_open(store->root, path, O_RDONLY | O_DIRECTORY, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	snprintf(hex, sizeof(hex), "%02x", first);
	/* many callers look at the first id only, of each directory: readdir(3) reads eight times as much ahead */
	bid_dents_init(&dents, dir);
	for (errno = 0; (entry = bid_dents_next(&dents)); errno = 0) {
		struct bid_id id;

		memcpy(hex + 2, entry->name, strlen(entry->name) + 1);
		if (bid_store_is_lower(store) && !strip_suffix(dir, hex))
			continue;
		if (bid_id_parse_str(hex, &id) < 0)
			continue;
		r = fn(user, &id);
		if (r != 0)
			return r;
	}
	return -errno;
}

/* The ids of a cache of libdebuginfod. @skip has the first bytes to leave out; @fn may change it. */
static int each_cached_id(struct bid_store *store, const bool *skip, bid_store_id_fn fn, void *user)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	if (!bid_store_is_lower(store))
		return 0;
	r = bid_beneath_opendir(store->root, "", &dir);
	if (r < 0)
		return r;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		struct bid_id id;

		if (bid_id_parse_str(entry->d_name, &id) < 0 || skip[id.bytes[0]] || bid_foreign_kinds(store, &id) == 0)
			continue;
		r = fn(user, &id);
		if (r != 0)
			return r;
	}
	return -errno;
}

/* Do the two functions above enumerate @id itself, not an alias? */
static bool lists_id(struct bid_store *store, const struct bid_id *id)
{
	char link[BID_LAYOUT_MAX];
	struct stat st;

	return bid_beneath_stat(store->root, bid_layout_link(id, link), &st) == 0 || bid_foreign_kinds(store, id) != 0;
}

/* Does the first link lead to a directory of perf's layout? */
static int is_perfs(void *user, const struct bid_id *id)
{
	char where[PATH_MAX], hex[BID_ID_HEX_MAX];
	const char *slash;

	if (bid_perf_link_find(user, id, where, sizeof(where)) < 0)
		return -EINVAL;
	slash = strrchr(where, '/');
	return slash && strcmp(slash + 1, bid_id_format(id, hex)) == 0 ? 1 : -EINVAL;
}

bool bid_has_paths_here(struct bid_store *store)
{
	struct stat st;
	int r = bid_beneath_stat(store->root, BID_LAYOUT_LINKS, &st);

	for (unsigned first = 0; first < 256 && r == 0; first++)
		r = each_id_of(store, (uint8_t)first, is_perfs, store);
	return r >= 0;
}

/* the store being enumerated, and the stores before it with reported ids */
struct id_sieve {
	struct bid_store *first, *current;
	bid_store_id_fn fn;
	void *user;
};

static int pass_id(void *user, const struct bid_id *id)
{
	const struct id_sieve *sieve = user;

	for (struct bid_store *store = sieve->first; store != sieve->current; store = store->lower)
		if (lists_id(store, id))
			return 0;
	return sieve->fn(sieve->user, id);
}

/* The ids whose first byte is from @first to @last. */
static int each_id_between(struct bid_store *store, unsigned first, unsigned last, bid_store_id_fn fn, void *user)
{
	struct id_sieve sieve = { .first = store, .current = store, .fn = fn, .user = user };
	bool others[256];
	int r = 0;

	for (unsigned byte = 0; byte < 256; byte++)
		others[byte] = byte < first || byte > last;
	for (; r == 0 && sieve.current; sieve.current = sieve.current->lower) {
		for (unsigned byte = first; r == 0 && byte <= last; byte++)
			r = each_id_of(sieve.current, (uint8_t)byte, pass_id, &sieve);
		/* a cache of libdebuginfod is one directory, and is read once */
		if (r == 0)
			r = each_cached_id(sieve.current, others, pass_id, &sieve);
	}
	return r;
}

int bid_store_each_id_in(struct bid_store *store, uint8_t first, bid_store_id_fn fn, void *user)
{
	return each_id_between(store, first, first, fn, user);
}

int bid_store_each_id(struct bid_store *store, bid_store_id_fn fn, void *user)
{
	return each_id_between(store, 0, UINT8_MAX, fn, user);
}

static int stop_at_first(void *user, const struct bid_id *id)
{
	return 1;
}

static int note_first(void *user, const struct bid_id *id)
{
	bool *has = user;

	has[id->bytes[0]] = true;
	return 0;
}

void bid_store_first_bytes(struct bid_store *store, bool ret_has[static 256])
{
	memset(ret_has, 0, 256 * sizeof(*ret_has));
	for (; store; store = store->lower) {
		for (unsigned first = 0; first < 256; first++)
			ret_has[first] = ret_has[first] || each_id_of(store, (uint8_t)first, stop_at_first, NULL) != 0;
		each_cached_id(store, ret_has, note_first, ret_has);
	}
}
