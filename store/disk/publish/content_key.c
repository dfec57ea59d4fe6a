// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files without a build-id: ".bidfs/content-key/<path>/<content key>". */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "api/content_key.h"
#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/digest.h"
#include "disk/dirwalk.h"
#include "disk/layout.h"
#include "disk/publish/ingest.h"
#include "disk/store.h"

enum {
	DIGEST_DIGITS = 32,
	DEPTH_MAX = 400, /* directories; each may cost the dirwalk a descriptor */
};

struct key_walk {
	int (*fn)(void *user, const struct bid_content_key *key);
	void *user;
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

static int publish_content_key(struct bid_store *store, const struct bid_temp *temp, struct bid_content_key *key)
{
	char dir[PATH_MAX];
	int r;

	if (snprintf(dir, sizeof(dir), "%s%s", BID_LAYOUT_CONTENT_KEYS, key->path) >= (int)sizeof(dir) ||
	    snprintf(key->stored, sizeof(key->stored), "%s/%s", dir, key->name) >= (int)sizeof(key->stored))
		return -ENAMETOOLONG;
	r = bid_temp_publish(temp, store, key->stored, false);
	key->known = r == -EEXIST;
	/* the process that published it may not have synced yet */
	return r < 0 && !key->known ? r : bid_beneath_sync(store->root, dir, UINT_MAX);
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

static int enter_directory(void *user, const char *path, int fd, uint64_t *depth, bool *ret_enter)
{
	*ret_enter = ++*depth < DEPTH_MAX;
	return 0;
}

/* Take a content key; other names are skipped. The path of its directory in the dirwalk is that of the file. */
static int visit_file(void *user, const struct bid_dirwalk_file *file)
{
	const struct key_walk *walk = user;
	struct bid_content_key key = { 0 };

	if (file->type != DT_REG || !parse_name(file->name, &key) ||
	    snprintf(key.stored, sizeof(key.stored), "%s%s/%s", BID_LAYOUT_CONTENT_KEYS, file->dir_path, file->name) >=
		    (int)sizeof(key.stored))
		return 0;
	snprintf(key.path, sizeof(key.path), "%s", file->dir_path);
	return walk->fn(walk->user, &key);
}

static int report_error(void *user, const char *path, int error)
{
	return error == -ENAMETOOLONG ? 0 : error;
}

int bid_store_each_content_key(struct bid_store *store, int (*fn)(void *user, const struct bid_content_key *key), void *user)
{
	static const struct bid_dirwalk_ops ops = { .enter = enter_directory, .file = visit_file, .error = report_error };
	struct key_walk walk = { .fn = fn, .user = user };

	return bid_dirwalk_each(store->root, BID_LAYOUT_CONTENT_KEYS, &ops, &walk);
}

int bid_store_remove_content_key(struct bid_store *store, const struct bid_content_key *key)
{
	int r = bid_store_writable(store) ? bid_beneath_unlink(store->root, key->stored) : -EROFS;

	if (r == 0)
		bid_beneath_prune_above(store->root, key->stored);
	return r;
}
