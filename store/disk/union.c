// SPDX-License-Identifier: LGPL-2.1-or-later
/* The merged view of a store and its lower stores. A name in an earlier store hides the same name in a later one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "api/remove.h"
#include "base/access.h"
#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/entries.h"
#include "disk/layout.h"
#include "disk/names.h"
#include "disk/one.h"
#include "disk/store.h"

/* the store being enumerated, and the stores before it with reported names */
struct sieve {
	struct bid_store *first, *current;
	const char *path; /* directory of entries */
	bid_store_id_fn id;
	bid_store_entry_fn entry;
	void *user;
};

static int pass_id(void *user, const struct bid_id *id)
{
	const struct sieve *sieve = user;

	for (struct bid_store *store = sieve->first; store != sieve->current; store = bid_store_lower(store))
		if (bid_one_lists(store, id))
			return 0;
	return sieve->id(sieve->user, id);
}

int bid_store_each_id_in(struct bid_store *store, uint8_t first, bid_store_id_fn fn, void *user)
{
	struct sieve sieve = { .first = store, .current = store, .id = fn, .user = user };
	int r = bid_one_each_id_in(store, first, fn, user);

	while (r == 0 && (sieve.current = bid_store_lower(sieve.current))) {
		r = bid_one_each_id_in(sieve.current, first, pass_id, &sieve);
		if (r == 0)
			r = bid_one_each_cached_id(sieve.current, first, pass_id, &sieve);
	}
	return r;
}

/* A cache of libdebuginfod is one directory, and must be read once: 256 calls of bid_store_each_id_in() would read it 256 times. */
int bid_store_each_id(struct bid_store *store, bid_store_id_fn fn, void *user)
{
	struct sieve sieve = { .first = store, .current = store, .id = fn, .user = user };
	int r = 0;

	for (; r == 0 && sieve.current; sieve.current = bid_store_lower(sieve.current)) {
		for (unsigned first = 0; first < 256 && r == 0; first++)
			r = bid_one_each_id_in(sieve.current, (uint8_t)first, pass_id, &sieve);
		if (r == 0)
			r = bid_one_each_cached_id(sieve.current, -1, pass_id, &sieve);
	}
	return r;
}

int bid_store_where(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size)
{
	int result = -ENOENT;

	for (; store; store = bid_store_lower(store)) {
		int r = bid_store_has_paths(store) ? bid_one_where(store, id, ret_path, size) : -ENOENT;

		if (r == 0)
			return 0;
		if (result == -ENOENT)
			result = r;
	}
	return result;
}

struct paths {
	bid_store_path_fn fn;
	void *user;
};

static int pass_path(void *user, const char *note, const char *path, bool there)
{
	const struct paths *paths = user;

	return there ? paths->fn(paths->user, path) : 0;
}

int bid_store_each_path(struct bid_store *store, const struct bid_id *id, bid_store_path_fn fn, void *user)
{
	struct paths paths = { .fn = fn, .user = user };
	char where[PATH_MAX];
	int r = bid_store_where(store, id, where, sizeof(where)) == 0 ? fn(user, where) : 0;

	for (; store && r == 0; store = bid_store_lower(store))
		if (bid_store_has_paths(store))
			r = bid_names_each(store, id, pass_path, &paths);
	return r;
}

enum bid_entry bid_store_classify(struct bid_store *store, const char *path, struct stat *ret_stat)
{
	enum bid_entry found = BID_ENTRY_NONE;

	for (; store && found != BID_ENTRY_ID; store = bid_store_lower(store)) {
		bool first = found == BID_ENTRY_NONE;
		enum bid_entry entry = BID_ENTRY_NONE;

		if (bid_store_has_paths(store))
			entry = bid_one_classify(store, path, first ? ret_stat : NULL);
		if (entry != BID_ENTRY_NONE)
			found = entry;
	}
	return found;
}

static int stat_one(struct bid_store *store, const char *path, struct stat *ret_stat)
{
	bid_auto_fd int fd = -1;
	struct stat st;
	int r = bid_beneath_open(bid_store_root(store), path, O_PATH, &fd);

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0 && S_ISREG(st.st_mode))
		r = bid_fstat(fd, &st);
	if (r < 0)
		return r;
	*ret_stat = st;
	return 0;
}

int bid_store_stat(struct bid_store *store, const char *path, struct stat *ret_stat)
{
	int result = -ENOENT;

	for (; store; store = bid_store_lower(store)) {
		int r = bid_store_has_paths(store) ? stat_one(store, path, ret_stat) : -ENOENT;

		if (r == 0)
			return 0;
		if (result == -ENOENT)
			result = r;
	}
	return result;
}

static int pass_entry(void *user, const char *name, enum bid_entry entry)
{
	const struct sieve *sieve = user;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s%s", sieve->path, *sieve->path ? "/" : "", name) >= (int)sizeof(path))
		return 0;
	for (struct bid_store *store = sieve->first; store != sieve->current; store = bid_store_lower(store))
		if (bid_store_has_paths(store) && bid_one_classify(store, path, NULL) != BID_ENTRY_NONE)
			return 0;
	return sieve->entry(sieve->user, name, entry);
}

int bid_store_each_entry(struct bid_store *store, const char *path, bid_store_entry_fn fn, void *user)
{
	struct sieve sieve = { .first = store, .current = store, .path = path, .entry = fn, .user = user };
	int result = bid_one_each_entry(store, path, fn, user);

	while ((result == 0 || result == -ENOENT) && (sieve.current = bid_store_lower(sieve.current))) {
		int r = bid_store_has_paths(sieve.current) ? bid_one_each_entry(sieve.current, path, pass_entry, &sieve) : -ENOENT;

		if (r != -ENOENT)
			result = r;
	}
	return result;
}

static int pass_build(void *user, const struct bid_place_of *entry)
{
	const struct sieve *sieve = user;
	struct stat st;

	for (struct bid_store *store = sieve->first; store != sieve->current; store = bid_store_lower(store))
		if (bid_beneath_stat(bid_store_root(store), entry->path, &st) == 0)
			return 0;
	return sieve->id(sieve->user, &entry->id);
}

int bid_store_each_build(struct bid_store *store, const char *path, bid_store_id_fn fn, void *user)
{
	struct sieve sieve = { .first = store, .current = store, .id = fn, .user = user };
	struct bid_visitor visitor = { .entry = pass_build, .user = &sieve };
	int result = -ENOENT;

	path += *path == '/';
	if (!*path || strcmp(path, BID_LAYOUT_LINKS) == 0 || strcmp(path, BID_LAYOUT_PRIVATE) == 0)
		return -ENOENT;
	for (; sieve.current && (result == 0 || result == -ENOENT); sieve.current = bid_store_lower(sieve.current)) {
		int r = bid_store_has_paths(sieve.current) ? bid_entries_of_path(sieve.current, path, &visitor) : -ENOENT;

		if (r != -ENOENT)
			result = r;
	}
	return result;
}
