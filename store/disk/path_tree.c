// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The tree of original paths, "usr/bin/ls/ID", of a store and its lower stores: first of each store alone, then the merged view. A
 * name in an earlier store hides the same name in a later one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "api/store.h"
#include "base/cleanup.h"
#include "base/world_readable.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/store.h"

/* Is there an artifact of @kind in @dir? */
static bool lies_in(int dir, enum bid_kind kind)
{
	struct stat st;

	return fstatat(dir, bid_kind_store_name(kind), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* Does @dir contain an artifact? perf's lookups check each name this way, and mostly the first kind matches. */
static bool has_artifact(int dir)
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (lies_in(dir, (enum bid_kind)kind))
			return true;
	return false;
}

/* Is the directory @path, open at @dir, an object directory? */
static bool is_build(const char *path, int dir)
{
	const char *slash = strrchr(path, '/');
	struct bid_id id;

	/* a hex name is an id only with artifacts below it: "/usr/lib/ab" may be an ordinary directory */
	return !bid_layout_is_beside(path) && bid_id_parse_str(slash ? slash + 1 : path, &id) == 0 && has_artifact(dir);
}

static enum bid_entry entry_in(struct bid_store *store, const char *path, struct stat *ret_stat)
{
	bid_auto_fd int fd = -1;
	struct stat st;

	if (bid_layout_is_beside(path) || bid_beneath_open(store->root, path, O_PATH | O_DIRECTORY, &fd) < 0 || fstat(fd, &st) < 0)
		return BID_ENTRY_NONE;
	if (ret_stat)
		*ret_stat = st;
	return is_build(path, fd) ? BID_ENTRY_ID : BID_ENTRY_DIR;
}

static int each_entry_of(struct bid_store *store, const char *path, bid_store_entry_fn fn, void *user)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	if (bid_layout_is_beside(path))
		return -ENOENT;
	r = bid_beneath_opendir(store->root, path, &dir);
	if (r < 0)
		return r;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		char child[PATH_MAX];
		enum bid_entry what;
		struct bid_id id;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(child, sizeof(child), "%s%s%s", path, *path ? "/" : "", entry->d_name) >= (int)sizeof(child) ||
		    bid_layout_is_beside(child))
			continue;
		/* the names of most directories are no ids, and need no stat(2) */
		if (entry->d_type == DT_DIR && bid_id_parse_str(entry->d_name, &id) < 0)
			what = BID_ENTRY_DIR;
		else if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
			what = entry_in(store, child, NULL);
		else
			what = BID_ENTRY_NONE;
		if (what == BID_ENTRY_NONE)
			continue;
		r = fn(user, entry->d_name, what);
		if (r != 0)
			return r;
	}
	return -errno;
}

enum bid_entry bid_store_entry_at(struct bid_store *store, const char *path, struct stat *ret_stat)
{
	enum bid_entry found = BID_ENTRY_NONE;

	for (; store && found != BID_ENTRY_ID; store = store->lower) {
		bool first = found == BID_ENTRY_NONE;
		enum bid_entry entry = BID_ENTRY_NONE;

		if (bid_store_has_paths(store))
			entry = entry_in(store, path, first ? ret_stat : NULL);
		if (entry != BID_ENTRY_NONE)
			found = entry;
	}
	return found;
}

static int stat_one(struct bid_store *store, const char *path, struct stat *ret_stat)
{
	bid_auto_fd int fd = -1;
	struct stat st;
	int r = bid_beneath_open(store->root, path, O_PATH, &fd);

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0 && S_ISREG(st.st_mode))
		r = bid_fstat(fd, &st);
	if (r < 0)
		return r;
	*ret_stat = st;
	return 0;
}

int bid_store_stat_path(struct bid_store *store, const char *path, struct stat *ret_stat)
{
	int result = -ENOENT;

	for (; store; store = store->lower) {
		int r = bid_store_has_paths(store) ? stat_one(store, path, ret_stat) : -ENOENT;

		if (r == 0)
			return 0;
		if (result == -ENOENT)
			result = r;
	}
	return result;
}

/* the store being enumerated, and the stores before it with reported names */
struct entry_sieve {
	struct bid_store *first, *current;
	const char *path; /* directory of the entries */
	bid_store_entry_fn fn;
	void *user;
};

static int pass_entry(void *user, const char *name, enum bid_entry entry)
{
	const struct entry_sieve *sieve = user;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s%s", sieve->path, *sieve->path ? "/" : "", name) >= (int)sizeof(path))
		return 0;
	for (struct bid_store *store = sieve->first; store != sieve->current; store = store->lower)
		if (bid_store_has_paths(store) && entry_in(store, path, NULL) != BID_ENTRY_NONE)
			return 0;
	return sieve->fn(sieve->user, name, entry);
}

int bid_store_each_entry(struct bid_store *store, const char *path, bid_store_entry_fn fn, void *user)
{
	struct entry_sieve sieve = { .first = store, .current = store, .path = path, .fn = fn, .user = user };
	int result = each_entry_of(store, path, fn, user);

	while ((result == 0 || result == -ENOENT) && (sieve.current = sieve.current->lower)) {
		int r = bid_store_has_paths(sieve.current) ? each_entry_of(sieve.current, path, pass_entry, &sieve) : -ENOENT;

		if (r != -ENOENT)
			result = r;
	}
	return result;
}

struct build_fn {
	bid_store_id_fn fn;
	void *user;
};

static int take_build(void *user, const char *name, enum bid_entry entry)
{
	const struct build_fn *build = user;
	struct bid_id id;

	return entry == BID_ENTRY_ID && bid_id_parse_str(name, &id) == 0 ? build->fn(build->user, &id) : 0;
}

int bid_store_each_build(struct bid_store *store, const char *path, bid_store_id_fn fn, void *user)
{
	path += *path == '/';
	return *path ? bid_store_each_entry(store, path, take_build, &(struct build_fn){ .fn = fn, .user = user }) : -ENOENT;
}
