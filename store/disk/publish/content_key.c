// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files without a build-id: ".bidfs/content-key/<path>/<content key>". */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "api/content_key.h"
#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/digest.h"
#include "disk/layout.h"
#include "disk/publish/content_key.h"
#include "disk/publish/ingest.h"
#include "disk/quarantine.h"
#include "disk/store.h"

enum {
	DIGEST_DIGITS = 32,
	DEPTH_MAX = 64, /* directories; each stays open while the dirwalk is below it */
	SWEPT_MAX = 8, /* attempts to create the directory while other processes remove it as empty */
};

struct key_walk {
	struct bid_store *store;
	int (*fn)(void *user, const struct bid_content_key *key);
	void *user;
	struct bid_content_key key; /* its path in the store is the position of the dirwalk */
};

/* Compute the content key of @temp, a copy of a file with the stat @st. */
static int name_it(const struct bid_temp *temp, const struct stat *st, struct bid_content_key *key)
{
	char digest[BID_DIGEST_MAX];
	int r = bid_digest_file(temp->fd, digest);

	if (r < 0)
		return r;
	key->size = (uint64_t)st->st_size;
	key->mtime = (int64_t)st->st_mtim.tv_sec;
	snprintf(key->name, sizeof(key->name), "%" PRIu64 "-%" PRId64 "-%s", key->size, key->mtime,
		 digest + strlen(BID_DIGEST_PREFIX));
	return 0;
}

static unsigned depth_of(const char *path)
{
	unsigned depth = 0;

	while ((path = strchr(path, '/'))) {
		path++;
		depth++;
	}
	return depth;
}

static int publish_content_key(struct bid_store *store, struct bid_temp *temp, struct bid_content_key *key)
{
	char dir[PATH_MAX];
	bid_auto_fd int fd = -1;
	int r;

	if (snprintf(dir, sizeof(dir), "%s%s", BID_LAYOUT_CONTENT_KEYS, key->path) >= (int)sizeof(dir) ||
	    snprintf(key->stored, sizeof(key->stored), "%s/%s", dir, key->name) >= (int)sizeof(key->stored))
		return -ENAMETOOLONG;
	if (depth_of(dir) > DEPTH_MAX)
		return -ENAMETOOLONG;
	r = -ENOENT;
	for (int attempts = 0; attempts < SWEPT_MAX && r == -ENOENT; attempts++) {
		bid_close(bid_steal_fd(&fd));
		r = bid_beneath_mkdirs(store->root, dir, true, &fd);
		if (r == 0)
			r = bid_temp_link(temp, fd, key->name);
	}
	key->known = r == -EEXIST;
	if (r < 0 && !key->known)
		return r;
	/* the process that published it may not have synced yet */
	return fsync(fd) < 0 ? -errno : 0;
}

int bid_store_keep_content_key(struct bid_store *store, const char *path, struct bid_content_key *ret_key)
{
	struct bid_ingest ingest = { .fd = -1, .temp = BID_TEMP_NONE };
	struct bid_content_key key;
	struct bid_id id;
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_ingest_open(&(struct bid_add){ .path = path, .fd = -1 }, &ingest);
	if (r == 0)
		r = bid_elf_build_id(ingest.fd, &id);
	if (r == 0)
		r = -EEXIST;
	if (r == -ENODATA) {
		memcpy(key.path, ingest.path, sizeof(key.path));
		r = bid_ingest_fill(store, &ingest, false, BID_DURABLE_EACH);
		if (r == 0)
			r = name_it(&ingest.temp, &ingest.st, &key);
		if (r == 0)
			r = publish_content_key(store, &ingest.temp, &key);
	}
	bid_ingest_release(&ingest);
	if (r < 0)
		return r;
	*ret_key = key;
	return 0;
}

static bool parse_name(const char *name, struct bid_content_key *key)
{
	char digest[DIGEST_DIGITS + 2];
	int end = 0;

	if (strlen(name) >= sizeof(key->name) ||
	    sscanf(name, "%" SCNu64 "-%" SCNd64 "-%33[0-9a-f]%n", &key->size, &key->mtime, digest, &end) != 3)
		return false;
	memcpy(key->name, name, strlen(name) + 1);
	return name[end] == '\0' && strlen(digest) == DIGEST_DIGITS;
}

bool bid_content_key_is_name(const char *text)
{
	struct bid_content_key key;

	return parse_name(text, &key);
}

/* Visit the entries below walk->key.stored; skip names that are no content keys. */
static int walk_directory(struct key_walk *walk)
{
	struct bid_content_key *key = &walk->key;
	size_t len = strlen(key->stored);
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_beneath_opendir(walk->store->root, key->stored, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    len + strlen(entry->d_name) + 2 > sizeof(key->stored))
			continue;
		snprintf(key->stored + len, sizeof(key->stored) - len, "/%s", entry->d_name);
		if (bid_beneath_stat(walk->store->root, key->stored, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			r = depth_of(key->stored) > DEPTH_MAX ? 0 : walk_directory(walk);
		} else if (S_ISREG(st.st_mode) && parse_name(entry->d_name, key)) {
			size_t at = strlen(BID_LAYOUT_CONTENT_KEYS);

			snprintf(key->path, sizeof(key->path), "%.*s", (int)(len - at), key->stored + at);
			r = walk->fn(walk->user, key);
		}
	}
	key->stored[len] = '\0';
	return r != 0 ? r : -errno;
}

int bid_store_each_content_key(struct bid_store *store, int (*fn)(void *user, const struct bid_content_key *key), void *user)
{
	struct key_walk walk = { .store = store, .fn = fn, .user = user, .key = { .stored = BID_LAYOUT_CONTENT_KEYS } };

	return walk_directory(&walk);
}

int bid_store_remove_content_key(struct bid_store *store, const struct bid_content_key *key)
{
	int r = bid_store_writable(store) ? bid_beneath_unlink(store->root, key->stored) : -EROFS;

	if (r == 0)
		bid_beneath_prune_above(store->root, key->stored);
	return r;
}

int bid_content_key_quarantine(struct bid_store *store, const struct bid_content_key *key, int fd, char *ret_path, size_t size)
{
	int r = bid_quarantine_move_as(store, key->stored, fd, key->name, "content-key", ret_path, size);

	if (r == 0)
		bid_beneath_prune_above(store->root, key->stored);
	return r;
}
