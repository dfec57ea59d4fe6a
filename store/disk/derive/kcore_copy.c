// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/derive/kcore_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/elf.h"
#include "api/write.h"
#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/entries.h"
#include "disk/store.h"

static const char image[] = "kcore";

bool bid_kcore_has_file(const char *name)
{
	return strcmp(name, image) == 0 || strcmp(name, "kallsyms") == 0 || strcmp(name, "modules") == 0;
}

int bid_kcore_check(int fd, const char *name)
{
	struct bid_elf_info info;
	int r = strcmp(name, image) == 0 ? bid_elf_examine(fd, &info) : 0;

	return r == -ENOEXEC ? -EBADMSG : r;
}

int bid_store_open_kcore(struct bid_store *store, const char *path, struct bid_file *ret_file)
{
	const char *slash = strrchr(path, '/');
	struct bid_file file = BID_FILE_NONE;
	int r = -ENOENT;

	for (; store; store = bid_store_lower(store)) {
		if (bid_store_has_paths(store))
			r = bid_store_open_file(store, path, false, &file);
		if (r != -ENOENT)
			break;
	}
	if (r < 0)
		return r;
	r = bid_kcore_check(file.fd, slash ? slash + 1 : path);
	if (r < 0)
		bid_file_release(&file);
	else
		*ret_file = file;
	return r == -EBADMSG ? -ENOENT : r;
}

int bid_store_unlink_kcore(struct bid_store *store, const char *path)
{
	return bid_store_writable(store) ? bid_entry_unlink(store, path) : -EROFS;
}

/* Remove hidden files that keep a directory from being empty: a truncated kcore, and perf's temporary files. */
static int clear_hidden(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bid_auto_dir DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;

	if (!entries) {
		bid_close(copy);
		return -errno;
	}
	while ((entry = readdir(entries))) {
		bid_auto_fd int fd = -1;

		if (strcmp(entry->d_name, image) == 0) {
			fd = openat(dir, image, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
			if (fd < 0 || bid_kcore_check(fd, image) != -EBADMSG)
				continue;
		} else if (entry->d_name[0] != '.' || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
			continue;
		}
		if (unlinkat(dir, entry->d_name, 0) < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}

int bid_store_rmdir_kcore(struct bid_store *store, const char *path)
{
	bid_auto_fd int dir = -1;
	int r = bid_store_rmdir(store, path);

	if (r != -ENOTEMPTY)
		return r;
	r = bid_beneath_open(bid_store_root(store), path, O_RDONLY | O_DIRECTORY, &dir);
	if (r == 0)
		r = clear_hidden(dir);
	return r < 0 ? r : bid_store_rmdir(store, path);
}
