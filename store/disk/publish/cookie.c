// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files without a build-id: ".bidfs/cookie/<path>/<content key>". */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "api/cookie.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "disk/beneath.h"
#include "disk/digest.h"
#include "disk/entries.h"
#include "disk/layout.h"
#include "disk/publish/cookie.h"
#include "disk/publish/ingest.h"
#include "disk/quarantine.h"
#include "disk/store.h"

enum {
	DIGEST_DIGITS = 32,
	DEPTH_MAX = 64, /* directories; each stays open while the dirwalk is below it */
	SWEPT_MAX = 8, /* attempts to create the directory while other processes remove it as empty */
};

struct walk {
	struct bid_store *store;
	int (*fn)(void *user, const struct bid_cookie *cookie);
	void *user;
	struct bid_cookie cookie; /* its path in the store is the position of the dirwalk */
};

/* Compute the content key of @temp, a copy of a file with the stat @st. */
static int name_it(const struct bid_temp *temp, const struct stat *st, struct bid_cookie *cookie)
{
	char digest[BID_DIGEST_MAX];
	int r = bid_digest_file(temp->fd, NULL, NULL, digest);

	if (r < 0)
		return r;
	cookie->size = (uint64_t)st->st_size;
	cookie->mtime = (int64_t)st->st_mtim.tv_sec;
	snprintf(cookie->name, sizeof(cookie->name), "%" PRIu64 "-%" PRId64 "-%s", cookie->size, cookie->mtime,
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

static int publish_cookie(struct bid_store *store, struct bid_temp *temp, struct bid_cookie *cookie)
{
	char dir[PATH_MAX];
	bid_auto_fd int fd = -1;
	int r;

	if (snprintf(dir, sizeof(dir), "%s%s", BID_LAYOUT_COOKIES, cookie->path) >= (int)sizeof(dir) ||
	    snprintf(cookie->stored, sizeof(cookie->stored), "%s/%s", dir, cookie->name) >= (int)sizeof(cookie->stored))
		return -ENAMETOOLONG;
	if (depth_of(dir) > DEPTH_MAX)
		return -ENAMETOOLONG;
	r = -ENOENT;
	for (int tries = 0; tries < SWEPT_MAX && r == -ENOENT; tries++) {
		bid_close(bid_steal_fd(&fd));
		r = bid_beneath_mkdirs(bid_store_root(store), dir, true, &fd);
		if (r == 0)
			r = bid_temp_link(temp, fd, cookie->name);
	}
	cookie->known = r == -EEXIST;
	if (r < 0 && !cookie->known)
		return r;
	/* the process that published it may not have synced yet */
	return fsync(fd) < 0 ? -errno : 0;
}

int bid_store_keep_cookie(struct bid_store *store, const char *path, struct bid_cookie *ret_cookie)
{
	struct bid_ingest ingest = { .fd = -1, .temp = BID_TEMP_NONE };
	struct bid_cookie cookie;
	struct bid_id id;
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_ingest_open(&(struct bid_add){ .path = path, .fd = -1 }, &ingest);
	if (r == 0)
		r = bid_elf_identify(ingest.fd, &id);
	if (r == 0)
		r = -EEXIST;
	if (r == -ENODATA) {
		memcpy(cookie.path, ingest.path, sizeof(cookie.path));
		r = bid_ingest_fill(store, &ingest, false, BID_DURABLE_EACH);
		if (r == 0)
			r = name_it(&ingest.temp, &ingest.st, &cookie);
		if (r == 0)
			r = publish_cookie(store, &ingest.temp, &cookie);
	}
	bid_ingest_release(&ingest);
	if (r < 0)
		return r;
	*ret_cookie = cookie;
	return 0;
}

static bool parse_name(const char *name, struct bid_cookie *cookie)
{
	char digest[DIGEST_DIGITS + 2];
	int end = 0;

	if (strlen(name) >= sizeof(cookie->name) ||
	    sscanf(name, "%" SCNu64 "-%" SCNd64 "-%33[0-9a-f]%n", &cookie->size, &cookie->mtime, digest, &end) != 3)
		return false;
	memcpy(cookie->name, name, strlen(name) + 1);
	return name[end] == '\0' && strlen(digest) == DIGEST_DIGITS;
}

bool bid_cookie_is_name(const char *text)
{
	struct bid_cookie cookie;

	return parse_name(text, &cookie);
}

/* Visit the entries below walk->cookie.stored; skip names that are no content keys. */
static int walk_directory(struct walk *walk)
{
	struct bid_cookie *cookie = &walk->cookie;
	size_t len = strlen(cookie->stored);
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_beneath_opendir(bid_store_root(walk->store), cookie->stored, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    len + strlen(entry->d_name) + 2 > sizeof(cookie->stored))
			continue;
		snprintf(cookie->stored + len, sizeof(cookie->stored) - len, "/%s", entry->d_name);
		if (bid_beneath_stat(bid_store_root(walk->store), cookie->stored, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			r = depth_of(cookie->stored) > DEPTH_MAX ? 0 : walk_directory(walk);
		} else if (S_ISREG(st.st_mode) && parse_name(entry->d_name, cookie)) {
			size_t at = strlen(BID_LAYOUT_COOKIES);

			snprintf(cookie->path, sizeof(cookie->path), "%.*s", (int)(len - at), cookie->stored + at);
			r = walk->fn(walk->user, cookie);
		}
	}
	cookie->stored[len] = '\0';
	return r != 0 ? r : -errno;
}

int bid_store_each_cookie(struct bid_store *store, int (*fn)(void *user, const struct bid_cookie *cookie), void *user)
{
	struct walk walk = { .store = store, .fn = fn, .user = user, .cookie = { .stored = BID_LAYOUT_COOKIES } };

	return walk_directory(&walk);
}

int bid_store_remove_cookie(struct bid_store *store, const struct bid_cookie *cookie)
{
	int r = bid_store_writable(store) ? bid_entry_unlink(store, cookie->stored) : -EROFS;

	if (r == 0)
		bid_entry_prune_above(store, cookie->stored);
	return r;
}

int bid_cookie_quarantine(struct bid_store *store, const struct bid_cookie *cookie, int fd, char *ret_path, size_t size)
{
	int r = bid_quarantine_move_as(store, cookie->stored, fd, cookie->name, "cookie", ret_path, size);

	if (r == 0)
		bid_entry_prune_above(store, cookie->stored);
	return r;
}
