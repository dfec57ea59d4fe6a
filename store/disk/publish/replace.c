// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/access.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/stat_data.h"
#include "disk/beneath.h"
#include "disk/check.h"
#include "disk/entries.h"
#include "disk/idset.h"
#include "disk/layout.h"
#include "disk/names.h"
#include "disk/objdir.h"
#include "disk/publish/merge.h"
#include "disk/publish/temp.h"
#include "disk/record.h"
#include "disk/store.h"

enum { ATTEMPTS = 8 }; /* while others add and remove the same */

struct replacing {
	struct bid_store *store;
	const struct bid_idset *wanted;
	const struct bid_id *id; /* the id of the new file; used with wanted */
	enum bid_kind kind;
	const struct stat *only; /* the only file to replace; NULL for any */
	int fd; /* the new file; -1 for counting only */
	const struct stat *st; /* for counting: the file whose names are not among the others */
	unsigned names, others;
};

static int replace_at(struct bid_store *store, const char *path, int fd)
{
	bid_auto_fd int parent = -1;
	const char *name;
	int r = bid_beneath_parent(bid_store_root(store), path, O_RDONLY, &parent, &name);

	if (r == 0)
		r = bid_merge_file(store, fd, parent, name);
	return r == 0 && fsync(parent) < 0 ? -errno : r;
}

/* Format the path of the file. In perf's old layout the entry @objdir is the file. */
static void path_in(const struct replacing *replacing, const char *objdir, bool is_file, char ret_path[static BID_LAYOUT_FILE_MAX])
{
	if (is_file)
		snprintf(ret_path, BID_LAYOUT_FILE_MAX, "%s", objdir);
	else
		bid_layout_file(objdir, replacing->kind, ret_path);
}

/* Replace the file in one object directory. A file removed meanwhile needs no replacement. */
static int replace_in(const struct replacing *replacing, const char *objdir, bool is_file)
{
	const struct stat *only = replacing->only;
	char path[BID_LAYOUT_FILE_MAX];
	struct stat st;
	int r = 0;

	path_in(replacing, objdir, is_file, path);
	if (only && (bid_beneath_stat(bid_store_root(replacing->store), path, &st) < 0 || !bid_same_inode(&st, only)))
		return 0;
	for (int attempts = 0; attempts < ATTEMPTS; attempts++) {
		r = replace_at(replacing->store, path, replacing->fd);
		if (r != -ENOENT)
			return r;
		if (bid_beneath_stat(bid_store_root(replacing->store), path, &st) == -ENOENT)
			return 0;
	}
	return r;
}

/* Does the entry belong to another build whose id begins alike? */
static bool is_anothers(const struct replacing *replacing, const struct bid_objdir *entry)
{
	struct bid_request request = { .id = *replacing->id, .kind = replacing->kind };
	char path[BID_LAYOUT_FILE_MAX];

	path_in(replacing, entry->path, entry->is_file, path);
	return bid_check_anothers(replacing->store, path, &request);
}

static int replace_entry(void *user, const struct bid_objdir *entry)
{
	struct replacing *replacing = user;
	char path[BID_LAYOUT_FILE_MAX];
	struct stat st;

	if (!(entry->kinds & 1U << replacing->kind) || !bid_idset_find(replacing->wanted, &entry->id) ||
	    is_anothers(replacing, entry))
		return 0;
	if (replacing->fd >= 0)
		return replace_in(replacing, entry->path, entry->is_file);
	path_in(replacing, entry->path, entry->is_file, path);
	replacing->names++;
	replacing->others += bid_beneath_stat(bid_store_root(replacing->store), path, &st) < 0 ||
			     !bid_same_inode(&st, replacing->st);
	return 0;
}

/* Replace the file at @objdir, whether in a directory or in perf's old layout. */
static int replace_known(const struct replacing *replacing, const char *objdir)
{
	int r = replace_in(replacing, objdir, false);

	return r == 0 ? replace_in(replacing, objdir, true) : r;
}

static int replace_noted(void *user, const char *note, const char *path, bool there)
{
	return there ? replace_known(user, path) : 0;
}

/* Replace the file under all names known without a dirwalk. */
static int replace_all_known(const struct replacing *replacing, const struct bid_id *id)
{
	struct bid_objdir_iter objdir = { 0 };
	struct bid_id filed = bid_layout_filed(id);
	int r = 0;

	while (r == 0 && bid_objdir_next(&objdir, replacing->store, &filed, replacing->kind))
		r = replace_known(replacing, objdir.path);
	return r == 0 ? bid_names_each(replacing->store, &filed, replace_noted, (void *)replacing) : r;
}

/* For each name in the whole store. */
static int replace_each(struct replacing *replacing, const struct bid_id *id)
{
	struct bid_idset wanted = { 0 };
	struct bid_visitor visitor = { .entry = replace_entry, .user = replacing };
	int r = bid_idset_init(&wanted, id, 1);

	replacing->wanted = &wanted;
	replacing->id = id;
	if (r == 0)
		r = bid_entries_each(replacing->store, &visitor);
	bid_idset_release(&wanted);
	return r;
}

int bid_replace(struct bid_store *store, const struct bid_request *request, const struct stat *only, int fd)
{
	struct replacing replacing = { .store = store, .kind = request->kind, .only = only, .fd = fd };

	return replace_each(&replacing, &request->id);
}

int bid_replaceable(struct bid_store *store, const struct bid_request *request, const struct stat *st, unsigned *ret_names,
		    unsigned *ret_others)
{
	struct replacing replacing = { .store = store, .kind = request->kind, .st = st, .fd = -1 };
	int r = replace_each(&replacing, &request->id);

	*ret_names = replacing.names;
	*ret_others = replacing.others;
	return r;
}

bool bid_rights_given(int fd, const struct stat *st)
{
	if (st->st_mode & (S_ISUID | S_ISGID))
		return true;
	return fgetxattr(fd, "security.capability", NULL, 0) >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
}

int bid_rights_take(struct bid_store *store, const struct bid_request *request, int fd, const struct bid_rights *rights)
{
	struct bid_temp temp = BID_TEMP_NONE;
	struct replacing replacing = { .store = store, .kind = request->kind };
	struct stat st, left;
	int r = bid_temp_new(store, true, &temp);

	if (r == 0)
		r = bid_copy_file(fd, temp.fd);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0)
		r = bid_set_readers(temp.fd, rights->mode & (bid_rights_given(fd, &st) ? 0444 : 0555), st.st_uid);
	if (r == 0 && fsync(temp.fd) < 0)
		r = -errno;
	replacing.only = &st;
	replacing.fd = temp.fd;
	if (r == 0)
		r = replace_all_known(&replacing, &request->id);
	if (r == 0 && rights->path)
		r = replace_in(&replacing, rights->path, true);
	if (r == 0 && fstat(fd, &left) < 0)
		r = -errno;
	if (r == 0 && left.st_nlink > rights->elsewhere)
		r = bid_replace(store, request, &st, temp.fd);
	bid_temp_release(&temp);
	return r;
}
