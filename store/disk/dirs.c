// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "disk/store.h"

enum {
	SETS = 256, /* a power of two */
	WAYS = 4,
	FILES_MIN = 4 * SETS * WAYS, /* with a lower limit of descriptors none is kept */
};

struct bid_dirs_kept {
	int fd; /* owned */
	unsigned refs; /* the users, and 1 for the table */
	uint64_t hash;
	char path[];
};

struct bid_dirs {
	pthread_mutex_t lock; /* protects all below; not held while a directory is opened */
	unsigned keepers; /* number of users that want cached descriptors */
	unsigned turn; /* way of a full set to evict next */
	struct bid_dirs_kept *sets[SETS][WAYS];
};

int bid_dirs_new(struct bid_dirs **ret_dirs)
{
	struct bid_dirs *dirs = calloc(1, sizeof(*dirs));

	if (!dirs)
		return -ENOMEM;
	pthread_mutex_init(&dirs->lock, NULL);
	*ret_dirs = dirs;
	return 0;
}

/* The lock is held. */
static void unref_dir(struct bid_dirs_kept *kept)
{
	if (--kept->refs > 0)
		return;
	bid_close(kept->fd);
	free(kept);
}

/* Drop the cached descriptor in @slot, if any. The lock is held. */
static void give_up(struct bid_dirs_kept **slot)
{
	if (*slot)
		unref_dir(*slot);
	*slot = NULL;
}

static void give_up_all(struct bid_dirs *dirs)
{
	for (unsigned i = 0; i < SETS; i++)
		for (unsigned j = 0; j < WAYS; j++)
			give_up(&dirs->sets[i][j]);
}

void bid_dirs_free(struct bid_dirs *dirs)
{
	if (!dirs)
		return;
	give_up_all(dirs);
	pthread_mutex_destroy(&dirs->lock);
	free(dirs);
}

void bid_dirs_keep(struct bid_store *store)
{
	struct bid_dirs *dirs = store->dirs;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < FILES_MIN)
		return;
	pthread_mutex_lock(&dirs->lock);
	dirs->keepers++;
	pthread_mutex_unlock(&dirs->lock);
}

void bid_dirs_drop(struct bid_store *store)
{
	struct bid_dirs *dirs = store->dirs;

	pthread_mutex_lock(&dirs->lock);
	if (dirs->keepers > 0 && --dirs->keepers == 0)
		give_up_all(dirs);
	pthread_mutex_unlock(&dirs->lock);
}

/* Where @path is in its set, or NULL. The lock is held. */
static struct bid_dirs_kept **find_kept(struct bid_dirs *dirs, const char *path, uint64_t hash)
{
	struct bid_dirs_kept **set = dirs->sets[hash & (SETS - 1)];

	for (unsigned i = 0; i < WAYS; i++)
		if (set[i] && set[i]->hash == hash && strcmp(set[i]->path, path) == 0)
			return &set[i];
	return NULL;
}

void bid_dir_release(struct bid_dir *dir)
{
	if (dir->kept) {
		pthread_mutex_lock(&dir->dirs->lock);
		unref_dir(dir->kept);
		pthread_mutex_unlock(&dir->dirs->lock);
	} else {
		bid_close(dir->fd);
	}
	*dir = BID_DIR_NONE;
}

/* Does the directory at @fd still exist? A removed directory has no links; on NFS fstat(2) of it fails. */
static bool is_there(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* Look up @path in the cache. Returns false if it is absent or the directory was removed. */
static bool recall_dir(struct bid_dirs *dirs, const char *path, uint64_t hash, struct bid_dir *ret_dir)
{
	struct bid_dir dir = { .fd = -1, .dirs = dirs };
	struct bid_dirs_kept **slot;

	pthread_mutex_lock(&dirs->lock);
	slot = find_kept(dirs, path, hash);
	if (slot) {
		dir.kept = *slot;
		dir.fd = dir.kept->fd;
		dir.kept->refs++;
	}
	pthread_mutex_unlock(&dirs->lock);
	if (!dir.kept)
		return false;
	if (is_there(dir.fd)) {
		*ret_dir = dir;
		return true;
	}
	pthread_mutex_lock(&dirs->lock);
	slot = find_kept(dirs, path, hash);
	if (slot && *slot == dir.kept)
		give_up(slot);
	pthread_mutex_unlock(&dirs->lock);
	bid_dir_release(&dir);
	return false;
}

/* Cache the open @dir as @path. Without memory, or after another thread was faster, @dir keeps its own descriptor. */
static void keep_dir(struct bid_dirs *dirs, const char *path, uint64_t hash, struct bid_dir *dir)
{
	size_t len = strlen(path) + 1;
	struct bid_dirs_kept *kept = malloc(sizeof(*kept) + len), **set = dirs->sets[hash & (SETS - 1)], **slot = NULL;

	if (!kept)
		return;
	*kept = (struct bid_dirs_kept){ .fd = dir->fd, .refs = 2, .hash = hash };
	memcpy(kept->path, path, len);
	pthread_mutex_lock(&dirs->lock);
	if (dirs->keepers == 0 || find_kept(dirs, path, hash)) {
		pthread_mutex_unlock(&dirs->lock);
		free(kept);
		return;
	}
	for (unsigned i = 0; i < WAYS && !slot; i++)
		if (!set[i])
			slot = &set[i];
	if (!slot)
		slot = &set[dirs->turn++ % WAYS];
	give_up(slot);
	*slot = kept;
	pthread_mutex_unlock(&dirs->lock);
	dir->dirs = dirs;
	dir->kept = kept;
}

static bool is_keeping(struct bid_dirs *dirs)
{
	bool keeping;

	pthread_mutex_lock(&dirs->lock);
	keeping = dirs->keepers > 0;
	pthread_mutex_unlock(&dirs->lock);
	return keeping;
}

int bid_dir_open(struct bid_store *store, const char *path, bool make, struct bid_touched *touched, struct bid_dir *ret_dir)
{
	struct bid_dirs *dirs = store->dirs;
	struct bid_dir dir = BID_DIR_NONE;
	bool keeping = is_keeping(dirs);
	uint64_t hash = keeping ? XXH3_64bits(path, strlen(path)) : 0;
	int r;

	if (keeping && recall_dir(dirs, path, hash, ret_dir))
		return 0;
	if (make)
		r = bid_beneath_mkdirs_touching(bid_store_root(store), path, touched, &dir.fd);
	else
		r = bid_beneath_open(bid_store_root(store), path, (keeping ? O_RDONLY : O_PATH) | O_DIRECTORY, &dir.fd);
	/* to look a name up takes less than to read all names, and less than to sync */
	if (r == -EACCES && keeping && !make) {
		r = bid_beneath_open(bid_store_root(store), path, O_PATH | O_DIRECTORY, &dir.fd);
		keeping = false;
	}
	if (r < 0)
		return r;
	if (keeping)
		keep_dir(dirs, path, hash, &dir);
	*ret_dir = dir;
	return 0;
}

int bid_dir_open_parent(struct bid_store *store, const char *path, bool make, struct bid_touched *touched, struct bid_dir *ret_dir,
			const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];

	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	*ret_name = slash + 1;
	return bid_dir_open(store, parent, make, touched, ret_dir);
}
