// SPDX-License-Identifier: LGPL-2.1-or-later
/* Open a store and set up its shared state. */
#include "disk/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "disk/beneath.h"
#include "disk/check_cache.h"
#include "disk/evict.h"
#include "disk/layout.h"
#include "disk/publish/temp.h"
#include "disk/space.h"

enum { FRESH_S = 60 }; /* at least */

/* Read a value of /proc/sys/vm in hundredths of a second; @otherwise if that fails. */
static long long read_centiseconds(const char *path, long long otherwise)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtoll(text, NULL, 10) : otherwise;
}

/*
 * Return twice the time after which the kernel writes a dirty file: 60 s by default. Returns 0 if the kernel never writes by
 * itself.
 */
static long long dirty_for_s(void)
{
	long long expire = read_centiseconds("/proc/sys/vm/dirty_expire_centisecs", 3000),
		  every = read_centiseconds("/proc/sys/vm/dirty_writeback_centisecs", 500);
	long long seconds = 2 * expire / 100;

	return every <= 0 ? 0 : seconds > FRESH_S ? seconds : FRESH_S;
}

/* Remove files in the way of private folders. Only a damaged file system creates such files. */
static void clear_way(int root)
{
	bid_auto_dir DIR *private = NULL;
	struct dirent *entry;
	struct stat st;

	if (bid_beneath_opendir(root, BID_LAYOUT_PRIVATE, &private) < 0)
		return;
	while ((entry = readdir(private)))
		if (bid_layout_is_private_dir(entry->d_name) &&
		    fstatat(dirfd(private), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
			unlinkat(dirfd(private), entry->d_name, 0);
}

/* Create the private folder, and remove temporary files of dead writers. */
static int prepare_private(struct bid_store *store)
{
	bid_auto_fd int temp = -1;
	int r;

	if (faccessat(store->root, ".", W_OK, AT_EACCESS) < 0)
		return -errno;
	clear_way(store->root);
	r = bid_beneath_mkdirs(store->root, BID_LAYOUT_TEMP, NULL, &temp);
	if (r < 0)
		return r;
	/* another user may have created it, perhaps root */
	if (faccessat(temp, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return -errno;
	bid_temp_sweep(temp);
	return 0;
}

static int open_directory(const char *path, bool create, int *ret_fd)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && create) {
		/* the same mode as in perf */
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Check the paths of the store early, so that errors appear now and not at the first lookup. */
static int try_paths(const struct bid_store *store)
{
	bid_auto_fd int fd = -1;

	return bid_beneath_open(store->root, "", O_PATH | O_DIRECTORY, &fd);
}

int bid_store_open(const char *path, unsigned flags, struct bid_store **ret_store)
{
	struct bid_store *store = calloc(1, sizeof(*store));
	int r;

	if (!store)
		return -ENOMEM;
	store->flags = flags;
	store->dirty_for_s = dirty_for_s();
	store->root = -1;
	r = open_directory(path, flags & BID_STORE_CREATE, &store->root);
	if (r < 0)
		goto fail;
	store->path = realpath(path, NULL);
	if (!store->path) {
		r = -errno;
		goto fail;
	}
	r = try_paths(store);
	if (r == 0)
		r = bid_check_cache_new(&store->check_cache);
	if (r < 0)
		goto fail;
	if (flags & BID_STORE_WRITE) {
		r = prepare_private(store);
		if (r == 0)
			r = bid_space_new(store, bid_evict, &store->space);
		if (r < 0)
			goto fail;
	}
	*ret_store = store;
	return 0;

fail:
	bid_store_free(store);
	return r;
}

void bid_store_refused(int error, const char *path)
{
	switch (error) {
	case -ENOENT:
		bid_error_about(path, error, "no such store: '%s' - create it with 'mkdir -p %s', or name another", path, path);
		break;
	case -ENOTDIR:
		bid_error_about(path, error,
				"not a directory: '%s', or '.bidfs' in it - name a build-id cache directory, as perf's ~/.debug",
				path);
		break;
	case -EACCES:
		bid_error_about(path, error, "permission denied: '%s' - let its owner give you the rights, or name another store",
				path);
		break;
	case -ENOTCONN:
	case -ECONNABORTED:
		bid_error_about(path, error, "a file system whose daemon died is on the store '%s' - remove it with 'umount -l %s'",
				path, path);
		break;
	case -ENOSYS:
		bid_error_about(
			path, error,
			"no openat2(2), for the store '%s': it needs Linux 5.6, and no filter of system calls that refuses it",
			path);
		break;
	default:
		bid_error_about(path, error, "%s: cannot open the store '%s' - name another", strerror(-error), path);
	}
}

int bid_store_add_lower(struct bid_store *store, const char *path)
{
	struct bid_store *last = store;
	int r;

	while (last->lower)
		last = last->lower;
	r = bid_store_open(path, 0, &last->lower);
	if (r < 0)
		return r;
	last->lower->upper = store;
	bid_check_cache_free(last->lower->check_cache);
	last->lower->check_cache = store->check_cache;
	last->lower->has_paths = bid_has_paths_here(last->lower);
	return 0;
}

void bid_store_allow_links(struct bid_store *store, const char *const *dirs)
{
	store->links = dirs;
}

void bid_store_require_signed(struct bid_store *store)
{
	store->require_signed = true;
}

void bid_store_free(struct bid_store *store)
{
	if (!store)
		return;
	/* first: its thread uses all the rest */
	bid_space_free(store->space);
	bid_store_free(store->lower);
	if (!bid_store_is_lower(store))
		bid_check_cache_free(store->check_cache);
	bid_close(store->root);
	free(store->path);
	free(store);
}
