// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/scan/scan_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/publish/temp.h"
#include "disk/store.h"

enum {
	CACHE_MAX = 1 << 30, /* bytes: some 30 million files */
	DAY_S = 24 * 60 * 60,
};

/* On disk: this, then the entries by their keys; all in the byte order of the machine. */
struct cache_header {
	char magic[8];
	uint32_t version;
	uint32_t order; /* shows the byte order of the machine */
	uint64_t digest; /* over the entries, seeded with the hash of the tree's path */
};

static const struct cache_header form = { .magic = "bidscan", .version = 3, .order = 0x01020304 };

_Static_assert(sizeof(struct bid_scan_entry) == 32, "as in docs/FORMAT.md");

struct bid_scan_cache {
	char name[32]; /* in BID_LAYOUT_SCANS */
	uint64_t path_hash;
	time_t used; /* time of the last write or read */
	char *data; /* owned; content of the file, NULL if empty */
	const struct bid_scan_entry *entries; /* in data */
	size_t n;
};

uint64_t bid_scan_key(const char *dir_path, uint64_t way, const char *name, const struct stat *st)
{
	const struct {
		uint64_t dev, ino, size;
		int64_t mtime, mtime_ns, ctime, ctime_ns;
		uint64_t dir, name, way;
	} file = {
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime = st->st_mtim.tv_sec,
		.mtime_ns = st->st_mtim.tv_nsec,
		.ctime = st->st_ctim.tv_sec,
		.ctime_ns = st->st_ctim.tv_nsec,
		.dir = XXH3_64bits(dir_path, strlen(dir_path)),
		.name = XXH3_64bits(name, strlen(name)),
		.way = way,
	};

	return XXH3_64bits(&file, sizeof(file));
}

/* Use @data of @len bytes as the cache if it is valid. */
static bool adopt_data(struct bid_scan_cache *cache, const char *data, size_t len)
{
	const struct cache_header *header = (const void *)data;
	size_t size = len - sizeof(*header);

	if (len < sizeof(*header) || memcmp(header, &form, offsetof(struct cache_header, digest)) != 0 ||
	    size % sizeof(struct bid_scan_entry) != 0 || XXH3_64bits_withSeed(header + 1, size, cache->path_hash) != header->digest)
		return false;
	cache->entries = (const void *)(header + 1);
	cache->n = size / sizeof(*cache->entries);
	return true;
}

int bid_scan_cache_load(struct bid_store *store, const char *path, struct bid_scan_cache **ret_cache)
{
	struct bid_scan_cache *cache = calloc(1, sizeof(*cache));
	bid_auto_fd int dir = -1, fd = -1;
	bid_auto_free char *data = NULL;
	struct stat st;
	size_t len;

	if (!cache)
		return -ENOMEM;
	cache->path_hash = XXH3_64bits(path, strlen(path));
	snprintf(cache->name, sizeof(cache->name), "%016llx", (unsigned long long)cache->path_hash);
	if (bid_beneath_open(store->root, BID_LAYOUT_SCANS, O_PATH | O_DIRECTORY, &dir) == 0 &&
	    bid_beneath_open(dir, cache->name, O_RDONLY | O_NONBLOCK, &fd) == 0 && fstat(fd, &st) == 0 &&
	    bid_read_file(fd, CACHE_MAX, &data, &len) == 0 && adopt_data(cache, data, len)) {
		cache->data = bid_steal(data);
		cache->used = st.st_mtim.tv_sec;
	}
	*ret_cache = cache;
	return 0;
}

bool bid_scan_cache_is_empty(const struct bid_scan_cache *cache)
{
	return !cache->data;
}

static int by_key(const void *a, const void *b)
{
	const struct bid_scan_entry *one = a, *other = b;

	return (one->key > other->key) - (one->key < other->key);
}

const struct bid_scan_entry *bid_scan_cache_find(const struct bid_scan_cache *cache, uint64_t key)
{
	struct bid_scan_entry wanted = { .key = key };

	return cache->data ? bsearch(&wanted, cache->entries, cache->n, sizeof(wanted), by_key) : NULL;
}

int bid_scan_found_add(struct bid_scan_found *found, const struct bid_scan_entry *entry, bool is_new)
{
	if (bid_array_grow(found->entries, found->n, found->room) < 0)
		return -ENOMEM;
	found->entries[found->n++] = *entry;
	found->n_new += is_new;
	return 0;
}

static int write_cache(struct bid_store *store, const struct bid_scan_cache *cache, int dir, const struct bid_scan_found *found,
		       size_t n, size_t n_entries)
{
	size_t size = n_entries * sizeof(struct bid_scan_entry);
	bid_auto_free struct cache_header *header = calloc(1, sizeof(*header) + size);
	struct bid_scan_entry *entries, *to;

	if (!header)
		return -ENOMEM;
	entries = to = (void *)(header + 1);
	for (size_t i = 0; i < n; i++)
		if (found[i].n > 0)
			to = (struct bid_scan_entry *)mempcpy(to, found[i].entries, found[i].n * sizeof(*to));
	qsort(entries, n_entries, sizeof(*entries), by_key);
	*header = form;
	header->digest = XXH3_64bits_withSeed(entries, size, cache->path_hash);
	return bid_temp_write(store, header, sizeof(*header) + size, dir, cache->name, true);
}

int bid_scan_cache_save(struct bid_store *store, struct bid_scan_cache *cache, const struct bid_scan_found *found, size_t n)
{
	size_t n_entries = 0, n_new = 0;
	bid_auto_fd int dir = -1;
	int r;

	for (size_t i = 0; i < n; i++) {
		n_entries += found[i].n;
		n_new += found[i].n_new;
	}
	r = bid_beneath_mkdirs(store->root, BID_LAYOUT_SCANS, NULL, &dir);
	if (r < 0)
		return r;
	if (!cache->data || n_new > 0 || n_entries != cache->n)
		return n_entries < CACHE_MAX / sizeof(struct bid_scan_entry) ? write_cache(store, cache, dir, found, n, n_entries)
									     : -EFBIG;
	if (time(NULL) - cache->used >= DAY_S)
		bid_touch(dir, cache->name, NULL);
	return 0;
}

/* Is @name the name of a cache: 16 hex digits? */
static bool is_cache(const char *name)
{
	return strspn(name, "0123456789abcdef") == 16 && name[16] == '\0';
}

int bid_scan_caches_forget(struct bid_store *store, int64_t before, bool dry_run, unsigned *left, unsigned *gone)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_beneath_opendir(store->root, BID_LAYOUT_SCANS, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		struct stat st;

		if (!is_cache(entry->d_name) || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (st.st_mtim.tv_sec < before && (dry_run || unlinkat(dirfd(dir), entry->d_name, 0) == 0))
			*gone += 1;
		else
			*left += 1;
	}
	return -errno;
}

void bid_scan_cache_free(struct bid_scan_cache *cache)
{
	if (!cache)
		return;
	free(cache->data);
	free(cache);
}
