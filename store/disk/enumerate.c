// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Enumerate and classify the contents of a store and its lower stores: first each store alone, then the merged view. A name in an
 * earlier store hides the same name in a later one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "api/remove.h"
#include "api/store.h"
#include "base/cleanup.h"
#include "base/getdents.h"
#include "base/world_readable.h"
#include "disk/beneath.h"
#include "disk/foreign_layout.h"
#include "disk/layout.h"
#include "disk/perf_link.h"
#include "disk/store.h"

#define DEBUG_SUFFIX ".debug"

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

/* Is the directory @path, open at @dir, an object directory? */
static bool is_build(const char *path, int dir)
{
	const char *slash = strrchr(path, '/');
	struct bid_id id;

	/* a hex name is an id only with artifacts below it: "/usr/lib/ab" may be an ordinary directory */
	return !bid_layout_is_beside(path) && bid_id_parse_str(slash ? slash + 1 : path, &id) == 0 && has_artifact(dir);
}

static enum bid_entry classify_in(struct bid_store *store, const char *path, struct stat *ret_stat)
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
			what = classify_in(store, child, NULL);
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

	for (struct bid_store *store = sieve->first; store != sieve->current; store = store->lower)
		if (lists_id(store, id))
			return 0;
	return sieve->id(sieve->user, id);
}

/* The ids whose first byte is from @first to @last. */
static int each_id_between(struct bid_store *store, unsigned first, unsigned last, bid_store_id_fn fn, void *user)
{
	struct sieve sieve = { .first = store, .current = store, .id = fn, .user = user };
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

int bid_store_perf_link(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size)
{
	int result = -ENOENT;

	for (; store; store = store->lower) {
		int r = bid_store_has_paths(store) ? bid_perf_link_find(store, id, ret_path, size) : -ENOENT;

		if (r == 0)
			return 0;
		if (result == -ENOENT)
			result = r;
	}
	return result;
}

enum bid_entry bid_store_entry_at(struct bid_store *store, const char *path, struct stat *ret_stat)
{
	enum bid_entry found = BID_ENTRY_NONE;

	for (; store && found != BID_ENTRY_ID; store = store->lower) {
		bool first = found == BID_ENTRY_NONE;
		enum bid_entry entry = BID_ENTRY_NONE;

		if (bid_store_has_paths(store))
			entry = classify_in(store, path, first ? ret_stat : NULL);
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

static int pass_entry(void *user, const char *name, enum bid_entry entry)
{
	const struct sieve *sieve = user;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s%s", sieve->path, *sieve->path ? "/" : "", name) >= (int)sizeof(path))
		return 0;
	for (struct bid_store *store = sieve->first; store != sieve->current; store = store->lower)
		if (bid_store_has_paths(store) && classify_in(store, path, NULL) != BID_ENTRY_NONE)
			return 0;
	return sieve->entry(sieve->user, name, entry);
}

int bid_store_each_entry(struct bid_store *store, const char *path, bid_store_entry_fn fn, void *user)
{
	struct sieve sieve = { .first = store, .current = store, .path = path, .entry = fn, .user = user };
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

/* Abbreviated ids: from the digits that a user typed to the id. */

struct search {
	const char *digits;
	size_t len;
	bid_store_id_fn fn;
	void *user;
	struct bid_id found; /* the first */
	size_t n_found;
	bool has_whole; /* one id has exactly these digits */
};

static int compare_id(void *user, const struct bid_id *id)
{
	struct search *search = user;
	char hex[BID_ID_HEX_MAX];

	if (strncmp(bid_id_format(id, hex), search->digits, search->len) != 0)
		return 0;
	search->has_whole |= hex[search->len] == '\0';
	if (search->n_found++ == 0)
		search->found = *id;
	return search->fn ? search->fn(search->user, id) : 0;
}

int bid_store_expand_id(struct bid_store *store, const char *digits, bid_store_id_fn fn, void *user, struct bid_id *ret_id)
{
	struct search search = { .digits = digits, .len = strlen(digits), .fn = fn, .user = user };
	struct bid_id first;
	int r;

	if (search.len < BID_ID_DIGITS_MIN || search.len > (size_t)2 * BID_ID_MAX ||
	    strspn(digits, "0123456789abcdef") != search.len)
		return -EINVAL;
	/* without a store no id matches */
	if (!store)
		return -ENOENT;
	bid_id_parse(digits, 2, &first);
	r = bid_store_each_id_in(store, first.bytes[0], compare_id, &search);
	if (r < 0)
		return r;
	/* a complete id is no abbreviation of a longer one */
	if (search.has_whole)
		return bid_id_parse_str(digits, ret_id);
	if (search.n_found != 1)
		return search.n_found ? -ENOTUNIQ : -ENOENT;
	*ret_id = search.found;
	return 0;
}
