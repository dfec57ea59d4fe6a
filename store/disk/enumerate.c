// SPDX-License-Identifier: LGPL-2.1-or-later
/* Enumerate the contents of one store. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/dents.h"
#include "base/stamp.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/objdir.h"
#include "disk/one.h"
#include "disk/store.h"

#define DEBUG_SUFFIX ".debug"

enum { OLD_LAYOUT_ID_MIN = 8 }; /* bytes; a file with a shorter hex name is no artifact */

/* Is there an artifact of @kind in @dir? */
static bool lies_in(int dir, enum bid_kind kind)
{
	struct stat st;

	return fstatat(dir, bid_kind_store_name(kind), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

int bid_place_kinds(struct bid_store *store, const char *path)
{
	bid_auto_fd int dir = -1;
	struct stat st;
	int kinds = 0;

	if (bid_beneath_open(bid_store_root(store), path, O_PATH, &dir) < 0 || fstat(dir, &st) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return 1 << bid_place_file_kind(path);
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (lies_in(dir, (enum bid_kind)kind))
			kinds |= 1 << kind;
	return kinds;
}

/* Does @dir contain an artifact? perf's lookups check each name this way, and mostly the first kind matches. */
static bool has_artifact(int dir)
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (lies_in(dir, (enum bid_kind)kind))
			return true;
	return false;
}

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

int bid_one_each_id_in(struct bid_store *store, uint8_t first, bid_store_id_fn fn, void *user)
{
	char path[sizeof(BID_LAYOUT_LINKS) + 4], hex[2 + NAME_MAX + 1];
	bid_auto_fd int dir = -1;
	struct bid_dents dents;
	struct bid_dent *entry;
	int r;

	snprintf(path, sizeof(path), BID_LAYOUT_LINKS "/%02x", first);
	if (bid_store_flags(store) & BID_STORE_LOWER)
		r = bid_store_open_linked(store, path, O_RDONLY | O_DIRECTORY, &dir);
	else
		r = bid_beneath_open(bid_store_root(store), path, O_RDONLY | O_DIRECTORY, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	snprintf(hex, sizeof(hex), "%02x", first);
	/* many callers look at the first id only, of each directory: readdir(3) reads eight times as much ahead */
	bid_dents_init(&dents, dir);
	for (errno = 0; (entry = bid_dents_next(&dents)); errno = 0) {
		struct bid_id id;

		memcpy(hex + 2, entry->name, strlen(entry->name) + 1);
		if (bid_store_flags(store) & BID_STORE_LOWER && !strip_suffix(dir, hex))
			continue;
		if (bid_id_parse_str(hex, &id) < 0)
			continue;
		r = fn(user, &id);
		if (r != 0)
			return r;
	}
	return -errno;
}

int bid_one_each_cached_id(struct bid_store *store, int first, bid_store_id_fn fn, void *user)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	if (!(bid_store_flags(store) & BID_STORE_LOWER))
		return 0;
	r = bid_beneath_opendir(bid_store_root(store), "", &dir);
	if (r < 0)
		return r;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		struct bid_id id;

		if (bid_id_parse_str(entry->d_name, &id) < 0 || (first >= 0 && id.bytes[0] != first) ||
		    bid_one_foreign_kinds(store, &id) == 0)
			continue;
		r = fn(user, &id);
		if (r != 0)
			return r;
	}
	return -errno;
}

bool bid_one_lists(struct bid_store *store, const struct bid_id *id)
{
	char link[BID_LAYOUT_MAX];
	struct stat st;

	return bid_beneath_stat(bid_store_root(store), bid_layout_link(id, link), &st) == 0 ||
	       bid_one_foreign_kinds(store, id) != 0;
}

/* Does the first link lead to a directory of perf's layout? */
static int is_perfs(void *user, const struct bid_id *id)
{
	char where[PATH_MAX], hex[BID_ID_HEX_MAX];
	const char *slash;

	if (bid_one_where(user, id, where, sizeof(where)) < 0)
		return -EINVAL;
	slash = strrchr(where, '/');
	return slash && strcmp(slash + 1, bid_id_format(id, hex)) == 0 ? 1 : -EINVAL;
}

bool bid_one_has_paths(struct bid_store *store)
{
	struct stat st;
	int r = bid_beneath_stat(bid_store_root(store), BID_LAYOUT_LINKS, &st);

	for (unsigned first = 0; first < 256 && r == 0; first++)
		r = bid_one_each_id_in(store, (uint8_t)first, is_perfs, store);
	return r >= 0;
}

/* Mix the state of a directory with the stat @st into @mark. */
static int mark_dir(const struct stat *st, uint64_t *mark)
{
	struct bid_stamp stamp = bid_stamp_take(st);
	const uint64_t state[] = { (uint64_t)stamp.dev,
				   (uint64_t)stamp.ino,
				   (uint64_t)stamp.mtime.tv_sec,
				   (uint64_t)stamp.mtime.tv_nsec,
				   (uint64_t)stamp.changed.tv_sec,
				   (uint64_t)stamp.changed.tv_nsec };

	*mark = XXH3_64bits_withSeed(state, sizeof(state), *mark);
	return stamp.racy ? -EAGAIN : 0;
}

/*
 * Mix the link directories @first to @last of one store into @mark. A lower store adds its root, where a cache of libdebuginfod has
 * its directories.
 */
static int mark_store(struct bid_store *store, unsigned first, unsigned last, uint64_t *mark)
{
	bid_auto_fd int links = -1;
	struct stat st;
	int r;

	if (bid_store_flags(store) & BID_STORE_LOWER) {
		if (fstat(bid_store_root(store), &st) < 0)
			return -errno;
		r = mark_dir(&st, mark);
		if (r < 0)
			return r;
	}
	r = bid_beneath_open(bid_store_root(store), BID_LAYOUT_LINKS, O_RDONLY | O_DIRECTORY, &links);
	if (r == 0 && fstat(links, &st) < 0)
		r = -errno;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = mark_dir(&st, mark);
	for (; first <= last && r == 0; first++) {
		char name[3];

		snprintf(name, sizeof(name), "%02x", first);
		/* in a lower store the directory may be a symbolic link */
		if (fstatat(links, name, &st, bid_store_flags(store) & BID_STORE_LOWER ? 0 : AT_SYMLINK_NOFOLLOW) == 0)
			r = mark_dir(&st, mark);
		else if (errno != ENOENT)
			r = -errno;
	}
	return r;
}

static int mark_ids(struct bid_store *store, unsigned first, unsigned last, uint64_t *ret_mark)
{
	uint64_t mark = 0;

	for (; store; store = bid_store_lower(store)) {
		int r = mark_store(store, first, last, &mark);

		if (r < 0)
			return r;
	}
	*ret_mark = mark ? mark : 1;
	return 0;
}

int bid_store_ids_mark(struct bid_store *store, uint64_t *ret_mark)
{
	return mark_ids(store, 0, UINT8_MAX, ret_mark);
}

int bid_store_ids_mark_in(struct bid_store *store, uint8_t first, uint64_t *ret_mark)
{
	return mark_ids(store, first, first, ret_mark);
}

/* Does @path lie beside the tree of original paths? */
static bool is_ours(const char *path)
{
	static const char *const names[] = { BID_LAYOUT_LINKS, BID_LAYOUT_PRIVATE };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		if (strncmp(path, names[i], len) == 0 && (path[len] == '\0' || path[len] == '/'))
			return true;
	}
	return false;
}

/* Is the last part of @path the name of an id? */
static bool is_named(const char *path, struct bid_id *ret_id)
{
	const char *slash = strrchr(path, '/');

	return bid_id_parse_str(slash ? slash + 1 : path, ret_id) == 0;
}

/* Is the directory @path, open at @dir, an object directory? */
static bool is_build(const char *path, int dir)
{
	struct bid_id id;

	/* a hex name is an id only with artifacts below it: "/usr/lib/ab" may be an ordinary directory */
	return !is_ours(path) && is_named(path, &id) && has_artifact(dir);
}

enum bid_entry bid_one_classify(struct bid_store *store, const char *path, struct stat *ret_stat)
{
	bid_auto_fd int fd = -1;
	struct bid_id id;
	struct stat st;

	if (is_ours(path) || bid_beneath_open(bid_store_root(store), path, O_PATH, &fd) < 0 || fstat(fd, &st) < 0)
		return BID_ENTRY_NONE;
	if (ret_stat)
		*ret_stat = st;
	if (S_ISDIR(st.st_mode))
		return is_build(path, fd) ? BID_ENTRY_ID : BID_ENTRY_DIR;
	return S_ISREG(st.st_mode) && is_named(path, &id) && id.len >= OLD_LAYOUT_ID_MIN ? BID_ENTRY_ID : BID_ENTRY_NONE;
}

int bid_one_each_entry(struct bid_store *store, const char *path, bid_store_entry_fn fn, void *user)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	if (is_ours(path))
		return -ENOENT;
	r = bid_beneath_opendir(bid_store_root(store), path, &dir);
	if (r < 0)
		return r;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		char child[PATH_MAX];
		enum bid_entry what;
		struct bid_id id;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(child, sizeof(child), "%s%s%s", path, *path ? "/" : "", entry->d_name) >= (int)sizeof(child) ||
		    is_ours(child))
			continue;
		/* the names of most directories are no ids, and need no stat(2) */
		if (entry->d_type == DT_DIR && bid_id_parse_str(entry->d_name, &id) < 0)
			what = BID_ENTRY_DIR;
		else if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN || entry->d_type == DT_REG)
			what = bid_one_classify(store, child, NULL);
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
