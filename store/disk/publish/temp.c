// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/store.h"

#define PREFIX "temp-"

enum { ABANDONED_S = 24 * 3600 }; /* seconds without a change until a file counts as left behind */

int bid_temp_name(char ret_name[static BID_TEMP_NAME_MAX])
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	snprintf(ret_name, BID_TEMP_NAME_MAX, PREFIX "%016llx", (unsigned long long)number);
	return 0;
}

int bid_temp_new(struct bid_store *store, bool named, struct bid_temp *ret_temp)
{
	bid_auto_fd int dir = -1;
	struct bid_temp temp = BID_TEMP_NONE;
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_beneath_mkdirs(store->root, BID_LAYOUT_TEMP, NULL, &dir);
	if (r < 0)
		return r;
	if (!named && !(store->flags & BID_STORE_NAMED_TEMP)) {
		temp.fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
		if (temp.fd < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
			r = -errno;
	}
	if (r >= 0 && temp.fd < 0) {
		temp.dir = bid_steal_fd(&dir);
		r = bid_temp_name(temp.name);
		if (r == 0)
			temp.fd = openat(temp.dir, temp.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (r == 0 && temp.fd < 0)
			r = -errno;
	}
	if (r < 0) {
		bid_temp_release(&temp);
		return r;
	}
	*ret_temp = temp;
	return 0;
}

int bid_temp_link(const struct bid_temp *temp, int dir, const char *name)
{
	if (temp->name[0])
		return linkat(temp->dir, temp->name, dir, name, 0) < 0 ? -errno : 0;
	return bid_fd_link(temp->fd, dir, name);
}

int bid_temp_publish(const struct bid_temp *temp, struct bid_store *store, const char *path, bool replace)
{
	int r = -ENOENT;

	/* a new directory is empty, and another process may remove it together with its neighbour */
	for (int attempts = 0; attempts < 8 && r == -ENOENT; attempts++) {
		bid_auto_fd int dir = -1;
		const char *name;

		r = bid_beneath_parent(store->root, path, O_CREAT, &dir, &name);
		if (r == 0)
			r = bid_temp_link(temp, dir, name);
		if (r == -EEXIST && replace && unlinkat(dir, name, 0) == 0)
			r = bid_temp_link(temp, dir, name);
	}
	return r;
}

/* Rename the named file to @name in @dir, in place of any file or empty directory there. */
static int replace_file(struct bid_temp *temp, int dir, const char *name)
{
	int r = renameat(temp->dir, temp->name, dir, name) < 0 ? -errno : 0;

	if (r == -EISDIR && unlinkat(dir, name, AT_REMOVEDIR) == 0)
		r = renameat(temp->dir, temp->name, dir, name) < 0 ? -errno : 0;
	if (r < 0)
		return r;
	temp->name[0] = '\0';
	return 0;
}

int bid_temp_write(struct bid_store *store, const void *data, size_t len, int dir, const char *name, bool replace)
{
	struct bid_temp temp = BID_TEMP_NONE;
	int r = bid_temp_new(store, replace, &temp);

	if (r == 0)
		r = bid_pwrite_full(temp.fd, data, len, 0);
	if (r == 0 && fchmod(temp.fd, 0644) < 0)
		r = -errno;
	if (r == 0)
		r = replace ? replace_file(&temp, dir, name) : bid_temp_link(&temp, dir, name);
	bid_temp_release(&temp);
	return r;
}

uint64_t bid_temp_wanted_room(const struct bid_temp *temp, uint64_t more)
{
	struct stat st;

	return 2 * ((fstat(temp->fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512) + more);
}

void bid_temp_release(struct bid_temp *temp)
{
	if (temp->name[0])
		unlinkat(temp->dir, temp->name, 0);
	temp->name[0] = '\0';
	bid_close(bid_steal_fd(&temp->fd));
	bid_close(bid_steal_fd(&temp->dir));
}

bool bid_temp_is_named(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

bool bid_temp_is_abandoned(int dir, const char *name, bool remove)
{
	struct stat st;

	/* the status change time: a writer sets the modification time of a download */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ctim.tv_sec + ABANDONED_S > time(NULL))
		return false;
	return !remove || unlinkat(dir, name, 0) == 0;
}

void bid_temp_sweep(int dir)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	bid_auto_dir DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;

	if (!entries) {
		bid_close(copy);
		return;
	}
	while ((entry = readdir(entries)))
		if (bid_temp_is_named(entry->d_name))
			bid_temp_is_abandoned(dir, entry->d_name, true);
}
