// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/stat_data.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/store.h"

enum {
	ATTEMPTS = 1000,
	MAX_DOWNLOADS = 64, /* files in the quarantine with which it takes no rejected download */
};

/* Move a file to an unused name. */
static int move_file(int from, const char *name, int to, const char *stem, char ret_name[static NAME_MAX + 1])
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (i == 0)
			snprintf(ret_name, NAME_MAX + 1, "%.200s", stem);
		else
			snprintf(ret_name, NAME_MAX + 1, "%.200s.%u", stem, i);
		if (renameat2(from, name, to, ret_name, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno == EEXIST)
			continue;
		/* file systems without the flag (NFS): the check before the rename suffices */
		if (errno != EINVAL || faccessat(to, ret_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return -errno;
		return renameat(from, name, to, ret_name) < 0 ? -errno : 0;
	}
	return -EEXIST;
}

int bid_quarantine_move_as(struct bid_store *store, const char *path, int fd, const char *what, const char *kind,
			   char ret_path[static PATH_MAX])
{
	char stem[NAME_MAX + 1], moved_name[NAME_MAX + 1];
	bid_auto_fd int from = -1, to = -1;
	struct stat wanted, moved;
	const char *name;
	int r = bid_beneath_parent(store->root, path, O_PATH, &from, &name);

	if (r == 0)
		r = bid_beneath_mkdirs(store->root, BID_LAYOUT_QUARANTINE, NULL, &to);
	if (r < 0)
		return r;

	snprintf(stem, sizeof(stem), "%s.%s.%lld", what, kind, (long long)time(NULL));
	r = move_file(from, name, to, stem, moved_name);
	if (r < 0)
		return r;
	if (fstat(fd, &wanted) < 0 || fstatat(to, moved_name, &moved, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!bid_same_inode(&wanted, &moved)) {
		/* another process put a file there meanwhile, and it is not checked */
		renameat2(to, moved_name, from, name, RENAME_NOREPLACE);
		return -ESTALE;
	}
	snprintf(ret_path, PATH_MAX, "%s/%s", BID_LAYOUT_QUARANTINE, moved_name);
	return 0;
}

int bid_quarantine_move(struct bid_store *store, const char *path, int fd, const struct bid_artifact *artifact,
			char ret_path[static PATH_MAX])
{
	char hex[BID_ID_HEX_MAX];

	return bid_quarantine_move_as(store, path, fd, bid_id_format(&artifact->id, hex), bid_kind_store_name(artifact->kind),
				      ret_path);
}

static void count_file(void *user, const char *name, int64_t time, uint64_t size)
{
	++*(unsigned *)user;
}

int bid_quarantine_open(struct bid_store *store, const struct bid_artifact *artifact, int *ret_dir,
			char ret_name[static NAME_MAX + 1])
{
	char hex[BID_ID_HEX_MAX];
	bid_auto_fd int dir = -1;
	unsigned n = 0;
	int r = bid_beneath_mkdirs(store->root, BID_LAYOUT_QUARANTINE, NULL, &dir);

	if (r == 0)
		r = bid_quarantine_each(store, count_file, &n);
	if (r < 0)
		return r;
	if (n >= MAX_DOWNLOADS)
		return -EDQUOT;
	snprintf(ret_name, NAME_MAX + 1, "%s.%s.%lld", bid_id_format(&artifact->id, hex), bid_kind_store_name(artifact->kind),
		 (long long)time(NULL));
	*ret_dir = bid_steal_fd(&dir);
	return 0;
}

/*
 * Read the time from a name by bid_quarantine_move(): "ID.KIND.TIME" or "KEY.content-key.TIME", perhaps with a number behind it.
 * Files in the quarantine keep their modification time. Returns false for any other name.
 */
static bool read_time(const char *name, int64_t *ret_time)
{
	char kind[16];
	long long seconds;
	int end = 0;

	if (sscanf(name, "%*[0-9a-f-].%15[a-z-].%lld%n", kind, &seconds, &end) != 2 || (name[end] != '\0' && name[end] != '.'))
		return false;
	*ret_time = seconds;
	return true;
}

int bid_quarantine_each(struct bid_store *store, bid_quarantine_fn fn, void *user)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	struct stat st;
	int64_t at;
	int r = bid_beneath_opendir(store->root, BID_LAYOUT_QUARANTINE, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; (entry = readdir(dir)); errno = 0)
		if (read_time(entry->d_name, &at) && fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			fn(user, entry->d_name, at, (uint64_t)st.st_size);
	return -errno;
}

int bid_quarantine_expire(struct bid_store *store, int64_t before, bool dry_run, unsigned *left, unsigned *gone)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int64_t at;
	int r = bid_beneath_opendir(store->root, BID_LAYOUT_QUARANTINE, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		if (!read_time(entry->d_name, &at))
			continue;
		if (at < before && (dry_run || unlinkat(dirfd(dir), entry->d_name, 0) == 0))
			++*gone;
		else
			++*left;
	}
	return -errno;
}
