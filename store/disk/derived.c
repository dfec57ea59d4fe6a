// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/derived.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/beneath.h"
#include "disk/entries.h"
#include "disk/space.h"
#include "disk/store.h"

static const struct {
	enum bid_kind kind;
	const char *folder;
} sorts[] = {
	{ BID_KIND_ELF, BID_LAYOUT_UNPACKED },
	{ BID_KIND_KALLSYMS, BID_LAYOUT_TABLES },
	{ BID_KIND_UNSTRIPPED, BID_LAYOUT_UNSTRIPPED },
};

#define SORTS (sizeof(sorts) / sizeof(sorts[0]))

const char *bid_derived_path(const struct bid_request *request, char buf[static BID_LAYOUT_MAX])
{
	struct bid_id disk_id = bid_layout_disk_id(&request->id);
	const char *folder = BID_LAYOUT_UNPACKED;

	for (size_t sort = 0; sort < SORTS; sort++)
		if (sorts[sort].kind == request->kind)
			folder = sorts[sort].folder;
	return bid_layout_fanout_path(folder, &disk_id, "", buf);
}

bool bid_derived_has_table(struct bid_store *store, const struct bid_id *disk_id)
{
	char path[BID_LAYOUT_MAX];
	struct stat st;

	bid_derived_path(&(struct bid_request){ .id = *disk_id, .kind = BID_KIND_KALLSYMS }, path);
	return bid_beneath_stat(bid_store_root(store), path, &st) == 0;
}

int bid_derived_keep(struct bid_store *store, const struct bid_request *request, struct bid_temp *temp)
{
	char path[BID_LAYOUT_MAX];
	bid_auto_fd int dir = -1;
	const char *name;
	struct stat st;
	int r;

	if (fsync(temp->fd) < 0 || fstat(temp->fd, &st) < 0)
		return -errno;
	r = bid_beneath_parent(bid_store_root(store), bid_derived_path(request, path), O_CREAT, &dir, &name);
	if (r < 0)
		return r;
	r = bid_temp_link(temp, dir, name);
	if (r == -EEXIST && unlinkat(dir, name, 0) == 0)
		r = bid_temp_link(temp, dir, name);
	if (r == 0)
		bid_space_published(bid_store_space(store), (uint64_t)st.st_size);
	return r;
}

void bid_derived_used(struct bid_store *store, const struct bid_request *request, time_t if_before)
{
	static const struct timespec now[] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
	char path[BID_LAYOUT_MAX];
	bid_auto_fd int dir = -1;
	const char *name;
	struct stat st;

	if (!bid_kind_is_elf(request->kind) && request->kind != BID_KIND_KALLSYMS)
		return;
	if (bid_beneath_parent(bid_store_root(store), bid_derived_path(request, path), O_PATH, &dir, &name) < 0 ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_atim.tv_sec >= if_before || !S_ISREG(st.st_mode))
		return;
	bid_touch(dir, name, now);
}

static int each_in(struct bid_store *store, size_t sort, unsigned first,
		   int (*fn)(void *user, const struct bid_request *request, const struct stat *st), void *user)
{
	char path[64], hex[2 + NAME_MAX + 1];
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	snprintf(path, sizeof(path), "%s/%02x", sorts[sort].folder, first);
	r = bid_beneath_opendir(bid_store_root(store), path, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		struct bid_request request = { .kind = sorts[sort].kind };
		struct stat st;

		snprintf(hex, sizeof(hex), "%02x%s", first & 0xff, entry->d_name);
		if (bid_entry_name(hex, &request.id) && fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			r = fn(user, &request, &st);
	}
	return r != 0 ? r : -errno;
}

int bid_derived_each(struct bid_store *store, int (*fn)(void *user, const struct bid_request *request, const struct stat *st),
		     void *user)
{
	int r = 0;

	for (size_t sort = 0; sort < SORTS; sort++)
		for (unsigned first = 0; r == 0 && first < 256; first++)
			r = each_in(store, sort, first, fn, user);
	return r;
}

void bid_derived_forget(struct bid_store *store, const struct bid_id *disk_id)
{
	char path[BID_LAYOUT_MAX];

	for (size_t sort = 0; sort < SORTS; sort++)
		bid_entry_unlink(store, bid_derived_path(&(struct bid_request){ .id = *disk_id, .kind = sorts[sort].kind }, path));
}
