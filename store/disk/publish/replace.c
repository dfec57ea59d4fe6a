// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/entries.h"
#include "disk/idset.h"
#include "disk/publish/join.h"
#include "disk/publish/temp.h"
#include "disk/record.h"
#include "disk/root.h"
#include "disk/store.h"

struct replacing {
	struct bid_store *store;
	const struct bid_idset *wanted;
	enum bid_kind kind;
	const struct stat *only; /* the file that it comes in the place of; NULL for any */
	int fd; /* what comes instead; -1 as long as it is only counted what there is */
	unsigned names;
};

static int replace_at(struct bid_store *store, const char *path, int fd)
{
	bid_auto_fd int parent = -1;
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int r;

	if (snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) : 0, path) >= (int)sizeof(directory))
		return -ENAMETOOLONG;
	r = bid_root_open(bid_store_root(store), directory, O_RDONLY | O_DIRECTORY, &parent);
	if (r == 0)
		r = bid_join_file(store, fd, parent, slash ? slash + 1 : path);
	return r == 0 && fsync(parent) < 0 ? -errno : r;
}

static int replace(void *user, const struct bid_place_of *entry)
{
	struct replacing *replacing = user;
	const struct stat *only = replacing->only;
	char path[PATH_MAX + 16];
	struct stat st;

	if (!(entry->kinds & 1U << replacing->kind) || !bid_idset_find(replacing->wanted, &entry->id))
		return 0;
	replacing->names++;
	if (replacing->fd < 0)
		return 0;
	/* in perf's old layout the entry is the file */
	if (entry->is_file)
		snprintf(path, sizeof(path), "%s", entry->path);
	else
		snprintf(path, sizeof(path), "%s/%s", entry->path, bid_kind_store_name(replacing->kind));
	if (only && (bid_root_stat(bid_store_root(replacing->store), path, &st) < 0 || st.st_ino != only->st_ino ||
		     st.st_dev != only->st_dev))
		return 0;
	return replace_at(replacing->store, path, replacing->fd);
}

int bid_replace(struct bid_store *store, const struct bid_request *request, const struct stat *only, int fd, unsigned *ret_names)
{
	struct bid_idset wanted = { 0 };
	struct replacing replacing = { .store = store, .wanted = &wanted, .kind = request->kind, .only = only, .fd = fd };
	struct bid_visitor visitor = { .entry = replace, .user = &replacing };
	int r = bid_idset_init(&wanted, &request->id, 1);

	if (r == 0)
		r = bid_entries_each(store, &visitor);
	bid_idset_release(&wanted);
	if (r < 0)
		return r;
	*ret_names = replacing.names;
	return 0;
}

bool bid_rights_given(int fd, const struct stat *st)
{
	if (st->st_mode & (S_ISUID | S_ISGID))
		return true;
	return fgetxattr(fd, "security.capability", NULL, 0) >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
}

int bid_rights_take(struct bid_store *store, const struct bid_request *request, int fd, struct bid_readers readers)
{
	struct bid_temp temp = BID_TEMP_NONE;
	struct stat st;
	unsigned names;
	int r = bid_temp_new(store, false, &temp);

	if (r == 0)
		r = bid_copy_file(fd, temp.fd);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0 && bid_rights_given(fd, &st))
		readers.mode &= S_IRUSR | S_IRGRP | S_IROTH;
	if (r == 0)
		r = bid_readers_set(&readers, temp.fd);
	if (r == 0 && fsync(temp.fd) < 0)
		r = -errno;
	if (r == 0)
		r = bid_replace(store, request, &st, temp.fd, &names);
	bid_temp_release(&temp);
	/* a missing record says nothing else */
	if (r == 0)
		bid_record_set(store, request, "link", "copy");
	return r;
}
