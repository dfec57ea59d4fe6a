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
	SLOTS_MIN = 1024,
	STEPS_MAX = 1024, /* bound of probing for a key, against damaged files */
	CACHE_MAX = 1 << 30, /* bytes: some 30 million files */
	DAY_S = 24 * 60 * 60,
};

/* the bytes of the last number tell the machine's byte order, too */
static const struct {
	char magic[8];
	uint32_t version;
	uint32_t order;
} form = { "bidscan", 2, 0x01020304 };

/* On disk: this, then the slots, then the ids; all in the byte order of the machine. */
struct cache_header {
	char magic[8];
	uint32_t version;
	uint32_t order;
	uint64_t n_slots; /* a power of two */
	uint64_t n_used; /* slots in use */
	uint64_t n_ids;
	uint64_t digest; /* over the tree's path, the header and the rest of the file */
};

/* An open-addressed table: a key stands in the first free slot from its hash on. */
struct bid_scan_slot {
	struct bid_scan_key key;
	uint32_t value; /* BID_SCAN_*, from BID_SCAN_KNOWN on plus the number of its id; 0 is free */
};

struct bid_scan_named {
	uint8_t kind;
	uint8_t len;
	uint8_t bytes[BID_ID_MAX];
};

struct bid_scan_cache {
	char name[32]; /* in BID_LAYOUT_SCANS */
	uint64_t path_hash;
	time_t used; /* time of the last write or read */
	char *data; /* owned; content of the file, NULL if empty */
	const struct cache_header *header; /* the following three: in data */
	const struct bid_scan_slot *slots;
	const struct bid_scan_named *ids;
};

struct bid_scan_key bid_scan_key(const char *dir_path, uint64_t way, const char *name, const struct stat *st)
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
	XXH128_hash_t hash = XXH3_128bits(&file, sizeof(file));

	return (struct bid_scan_key){ { (uint32_t)hash.low64, (uint32_t)(hash.low64 >> 32), (uint32_t)hash.high64 } };
}

static bool same_key(const struct bid_scan_key *a, const struct bid_scan_key *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1] && a->words[2] == b->words[2];
}

/*
 * Digest the tree's path, the header up to the digest, and the @len bytes at @rest behind it. Each digest is the seed of the next.
 */
static uint64_t digest_of(const struct bid_scan_cache *cache, const struct cache_header *header, const void *rest, size_t len)
{
	return XXH3_64bits_withSeed(rest, len,
				    XXH3_64bits_withSeed(header, offsetof(struct cache_header, digest), cache->path_hash));
}

/* Use @data of @len bytes as the cache if it is valid. */
static bool adopt_data(struct bid_scan_cache *cache, char *data, size_t len)
{
	const struct cache_header *header = (const void *)data;
	size_t rest;

	if (len < sizeof(*header))
		return false;
	rest = len - sizeof(*header);
	if (memcmp(header, &form, sizeof(form)) != 0 || header->n_slots < SLOTS_MIN || (header->n_slots & (header->n_slots - 1)) ||
	    header->n_slots > rest / sizeof(struct bid_scan_slot) || header->n_used >= header->n_slots)
		return false;
	if (header->n_ids > rest / sizeof(struct bid_scan_named) ||
	    header->n_slots * sizeof(struct bid_scan_slot) + header->n_ids * sizeof(struct bid_scan_named) != rest)
		return false;
	if (digest_of(cache, header, data + sizeof(*header), rest) != header->digest)
		return false;
	cache->header = header;
	cache->slots = (const void *)(data + sizeof(*header));
	cache->ids = (const void *)(cache->slots + header->n_slots);
	return true;
}

static int open_cache(struct bid_store *store, const char *name, int *ret_fd)
{
	bid_auto_fd int dir = -1;
	int r = bid_beneath_open(bid_store_root(store), BID_LAYOUT_SCANS, O_PATH | O_DIRECTORY, &dir);

	return r < 0 ? r : bid_beneath_open(dir, name, O_RDONLY | O_NONBLOCK, ret_fd);
}

int bid_scan_cache_load(struct bid_store *store, const char *path, bool forget, struct bid_scan_cache **ret_cache)
{
	struct bid_scan_cache *cache = calloc(1, sizeof(*cache));
	bid_auto_fd int fd = -1;
	bid_auto_free char *data = NULL;
	struct stat st;
	size_t len;

	if (!cache)
		return -ENOMEM;
	cache->path_hash = XXH3_64bits(path, strlen(path));
	snprintf(cache->name, sizeof(cache->name), "%016llx", (unsigned long long)cache->path_hash);
	if (!forget && open_cache(store, cache->name, &fd) == 0 && fstat(fd, &st) == 0 &&
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

struct bid_scan_result bid_scan_cache_find(const struct bid_scan_cache *cache, const struct bid_scan_key *key)
{
	struct bid_scan_result result = { .what = BID_SCAN_UNKNOWN };
	const struct bid_scan_named *named;
	const struct bid_scan_slot *slot;
	uint64_t mask, index;

	if (!cache->data)
		return result;
	mask = cache->header->n_slots - 1;
	for (uint64_t i = 0;; i++) {
		slot = &cache->slots[(key->words[0] + i) & mask];
		if (slot->value == BID_SCAN_UNKNOWN || i == STEPS_MAX)
			return result;
		if (same_key(&slot->key, key))
			break;
	}
	if (slot->value < BID_SCAN_KNOWN) {
		result.what = slot->value;
		return result;
	}
	index = slot->value - BID_SCAN_KNOWN;
	if (index >= cache->header->n_ids)
		return result;
	named = &cache->ids[index];
	if ((named->kind != BID_KIND_ELF && named->kind != BID_KIND_DEBUGINFO) ||
	    bid_id_from_bytes(named->bytes, named->len, &result.id) < 0)
		return result;
	result.kind = (enum bid_kind)named->kind;
	result.what = BID_SCAN_KNOWN;
	return result;
}

int bid_scan_found_add(struct bid_scan_found *found, const struct bid_scan_key *key, const struct bid_scan_result *result,
		       bool is_new)
{
	uint32_t value = result->what;
	int r = bid_array_grow(found->slots, found->n, found->room);

	if (r == 0 && result->what == BID_SCAN_KNOWN) {
		struct bid_scan_named *named;

		r = bid_array_grow(found->ids, found->n_ids, found->room_ids);
		if (r < 0)
			return r;
		value += (uint32_t)found->n_ids;
		named = &found->ids[found->n_ids++];
		named->kind = (uint8_t)result->kind;
		named->len = result->id.len;
		memcpy(named->bytes, result->id.bytes, sizeof(named->bytes));
	}
	if (r < 0)
		return r;
	found->slots[found->n++] = (struct bid_scan_slot){ .key = *key, .value = value };
	found->n_new += is_new;
	return 0;
}

void bid_scan_found_release(struct bid_scan_found *found)
{
	free(found->slots);
	free(found->ids);
	*found = (struct bid_scan_found){ 0 };
}

static void put_slot(struct bid_scan_slot *slots, uint64_t mask, const struct bid_scan_slot *slot, size_t first_id)
{
	uint64_t at = slot->key.words[0] & mask;

	while (slots[at].value)
		at = (at + 1) & mask;
	slots[at] = *slot;
	if (slot->value >= BID_SCAN_KNOWN)
		slots[at].value += (uint32_t)first_id;
}

/* The file's bytes. The caller frees @ret_data. */
static int build_file(const struct bid_scan_cache *cache, const struct bid_scan_found *found, size_t n, char **ret_data,
		      size_t *ret_len)
{
	struct cache_header header = { .n_slots = SLOTS_MIN };
	struct bid_scan_slot *slots;
	struct bid_scan_named *ids;
	size_t len, first_id = 0;
	char *data;

	memcpy(&header, &form, sizeof(form));
	for (size_t i = 0; i < n; i++) {
		header.n_used += found[i].n;
		header.n_ids += found[i].n_ids;
	}
	while (header.n_slots < header.n_used + header.n_used / 3)
		header.n_slots *= 2;
	len = sizeof(header) + header.n_slots * sizeof(*slots) + header.n_ids * sizeof(*ids);
	if (len > CACHE_MAX)
		return -EFBIG;
	data = calloc(1, len);
	if (!data)
		return -ENOMEM;
	slots = (void *)(data + sizeof(header));
	ids = (void *)(slots + header.n_slots);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < found[i].n; j++)
			put_slot(slots, header.n_slots - 1, &found[i].slots[j], first_id);
		if (found[i].n_ids)
			memcpy(ids + first_id, found[i].ids, found[i].n_ids * sizeof(*ids));
		first_id += found[i].n_ids;
	}
	header.digest = digest_of(cache, &header, data + sizeof(header), len - sizeof(header));
	memcpy(data, &header, sizeof(header));
	*ret_data = data;
	*ret_len = len;
	return 0;
}

/* Does the file say this already: is there nothing new, and nothing gone? */
static bool is_saved(const struct bid_scan_cache *cache, const struct bid_scan_found *found, size_t n)
{
	size_t used = 0;

	if (!cache->data)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (found[i].n_new > 0)
			return false;
		used += found[i].n;
	}
	return used == cache->header->n_used;
}

int bid_scan_cache_save(struct bid_store *store, struct bid_scan_cache *cache, const struct bid_scan_found *found, size_t n)
{
	struct bid_temp temp = BID_TEMP_NONE;
	bid_auto_free char *data = NULL;
	bid_auto_fd int dir = -1;
	size_t len;
	int r;

	r = bid_beneath_mkdirs(bid_store_root(store), BID_LAYOUT_SCANS, false, &dir);
	if (r == 0 && is_saved(cache, found, n)) {
		if (time(NULL) - cache->used >= DAY_S)
			bid_touch(dir, cache->name, NULL);
		return 0;
	}
	if (r == 0)
		r = build_file(cache, found, n, &data, &len);
	if (r == 0)
		r = bid_temp_new(store, true, &temp);
	if (r == 0)
		r = bid_pwrite_full(temp.fd, data, len, 0);
	if (r == 0 && fchmod(temp.fd, 0644) < 0)
		r = -errno;
	if (r == 0)
		r = bid_temp_replace(&temp, dir, cache->name);
	bid_temp_release(&temp);
	return r;
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
	int r = bid_beneath_opendir(bid_store_root(store), BID_LAYOUT_SCANS, &dir);

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
