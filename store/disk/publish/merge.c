// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "base/stat_data.h"
#include "base/world_readable.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/objdir.h"
#include "disk/other_paths.h"
#include "disk/perf_link.h"
#include "disk/publish/temp.h"
#include "disk/store.h"

/*
 * Put the file at @fd under @name in the directory @to, in place of any other file. The file has a name already: a file without
 * names cannot get a second one.
 */
static int link_over(struct bid_store *store, int fd, int to, const char *name)
{
	char temp_name[BID_TEMP_NAME_MAX];
	bid_auto_fd int temp = -1;
	int r = bid_fd_link(fd, to, name);

	if (r != -EEXIST)
		return r;
	r = bid_beneath_mkdirs(store->root, BID_LAYOUT_TEMP, NULL, &temp);
	if (r == 0)
		r = bid_temp_name(temp_name);
	if (r == 0)
		r = bid_fd_link(fd, temp, temp_name);
	if (r < 0)
		return r;
	if (renameat(temp, temp_name, to, name) < 0)
		r = -errno;
	/* rename(2) leaves both names if they are one inode, and the first name if the directory was removed */
	unlinkat(temp, temp_name, 0);
	return r;
}

static int open_file(int dir, const char *name, int *ret_fd, struct stat *ret_st)
{
	bid_auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret_st) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode))
		return -EINVAL;
	*ret_fd = bid_steal_fd(&fd);
	return 0;
}

static bool is_stripped(int fd)
{
	struct bid_elf_info info;

	return bid_elf_examine(fd, &info) == 0 && !info.has_dwarf && !info.has_symtab;
}

static bool is_one_file(int from, int to, const char *name)
{
	struct stat st, other;

	return fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && fstatat(to, name, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
	       bid_same_inode(&st, &other);
}

/* bid_merge() of one kind */
static int merge_kind(struct bid_store *store, int from, int to, enum bid_kind kind)
{
	const char *name = bid_kind_store_name(kind);
	bid_auto_fd int ours = -1, theirs = -1;
	bool ours_wins = false;
	struct stat st;
	int r;

	if (is_one_file(from, to, name))
		return 0;
	r = open_file(from, name, &ours, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = open_file(to, name, &theirs, &st);
	if (r == -ENOENT) {
		r = bid_fd_link(ours, to, name);
		/* another process published one meanwhile */
		return r == -EEXIST ? 0 : r;
	}
	if (r == 0)
		r = bid_same_bytes(ours, theirs);
	if (r == 0 && kind == BID_KIND_DEBUGINFO) {
		ours_wins = is_stripped(theirs);
		r = ours_wins != is_stripped(ours);
	}
	if (r <= 0)
		return r;
	return ours_wins ? link_over(store, ours, to, name) : link_over(store, theirs, from, name);
}

int bid_merge(struct bid_store *store, const char *from, const char *to, unsigned kinds)
{
	bid_auto_fd int source = -1, target = -1;
	int r;

	r = bid_beneath_open(store->root, to, O_RDONLY | O_DIRECTORY, &target);
	if (r == 0)
		r = bid_beneath_open(store->root, from, O_RDONLY | O_DIRECTORY, &source);
	if (r == -ENOENT && target >= 0)
		return 0;
	for (int kind = BID_KIND_NONE + 1; r == 0 && kind < BID_KIND_COUNT; kind++)
		if (kinds & 1U << kind)
			r = merge_kind(store, source, target, (enum bid_kind)kind);
	return r;
}

/* Does @objdir have a correct file of @kind? */
static bool is_right(struct bid_store *store, const char *objdir, const struct bid_id *disk_id, enum bid_kind kind)
{
	struct bid_artifact artifact = { .id = *disk_id, .kind = kind };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	char path[BID_LAYOUT_FILE_MAX];
	struct bid_id carried;

	if (bid_open_checked(store, bid_layout_file(objdir, kind, path), &artifact, &file) < 0)
		return false;
	return !file.packed || (bid_elf_build_id_any(file.fd, &carried) == 0 && bid_id_answers(&carried, disk_id));
}

/* Does @path have a file by which perf finds a build? */
static bool is_build(struct bid_store *store, const char *path, const struct bid_id *disk_id)
{
	return is_right(store, path, disk_id, BID_KIND_ELF) || is_right(store, path, disk_id, BID_KIND_KALLSYMS) ||
	       is_right(store, path, disk_id, BID_KIND_VDSO);
}

/* Add the correct files of the unnamed directory to @path. Returns as bid_merge(). */
static int merge_correct(struct bid_store *store, const struct bid_id *disk_id, const char *unnamed, const char *path)
{
	unsigned kinds = 0;

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (!bid_kind_is_elf((enum bid_kind)kind) || is_right(store, unnamed, disk_id, (enum bid_kind)kind))
			kinds |= 1U << kind;
	return bid_merge(store, unnamed, path, kinds);
}

/* Remove from the unnamed directory the files that @path has too. Files published there since stay, and readers find them. */
static void take_away(struct bid_store *store, const char *unnamed, const char *path)
{
	char there[BID_LAYOUT_FILE_MAX], here[BID_LAYOUT_FILE_MAX];
	struct stat st, other;
	unsigned kinds = 0;

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		bid_layout_file(unnamed, (enum bid_kind)kind, there);
		bid_layout_file(path, (enum bid_kind)kind, here);
		if (bid_beneath_stat(store->root, there, &st) == 0 && bid_beneath_stat(store->root, here, &other) == 0 &&
		    bid_same_inode(&st, &other))
			kinds |= 1U << kind;
	}
	bid_objdir_remove(store, unnamed, kinds);
}

int bid_merge_unnamed(struct bid_store *store, const struct bid_id *id, const char *path, bool durable)
{
	struct bid_id disk_id = bid_layout_disk_id(id);
	char unnamed[BID_LAYOUT_MAX];
	int r;

	if (!is_build(store, path, &disk_id))
		return -EBADMSG;
	bid_layout_under(BID_STORE_UNNAMED, &disk_id, unnamed);
	r = merge_correct(store, &disk_id, unnamed, path);
	if (r == 0)
		r = bid_perf_link_point(store, &disk_id, path);
	/* again, for files that another process published there before the link changed */
	if (r == 0)
		r = merge_correct(store, &disk_id, unnamed, path);
	if (r == 0 && durable)
		r = bid_store_sync(store);
	if (r < 0)
		return r;
	take_away(store, unnamed, path);
	return 0;
}

struct replacing {
	struct bid_store *store;
	const struct bid_artifact *artifact;
	const struct stat *only; /* the only file to replace; NULL for any */
	int fd; /* the new file */
	int names; /* replaced */
};

/* Replace the file @path, if it exists and is not of another build whose id begins alike. */
static int replace_file(struct replacing *replacing, const char *path)
{
	bid_auto_fd int parent = -1;
	const char *name;
	struct stat st;
	int r = bid_beneath_parent(replacing->store->root, path, O_RDONLY, &parent, &name);

	if (r == 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	if (!S_ISREG(st.st_mode) || (replacing->only && !bid_same_inode(&st, replacing->only)) ||
	    bid_is_anothers_file(replacing->store, path, replacing->artifact))
		return 0;
	r = link_over(replacing->store, replacing->fd, parent, name);
	if (r == 0 && fsync(parent) < 0)
		r = -errno;
	replacing->names += r == 0;
	return r;
}

static int replace_in(struct replacing *replacing, const char *objdir)
{
	char path[BID_LAYOUT_FILE_MAX];

	return replace_file(replacing, bid_layout_file(objdir, replacing->artifact->kind, path));
}

static int replace_noted(void *user, const char *note, const char *path, bool there)
{
	return there ? replace_in(user, path) : 0;
}

int bid_replace(struct bid_store *store, const struct bid_artifact *artifact, const char *path, const struct stat *only, int fd)
{
	struct replacing replacing = { .store = store, .artifact = artifact, .only = only, .fd = fd };
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	struct bid_objdir_iter objdir = { 0 };
	int r = 0;

	while (r == 0 && bid_objdir_next(&objdir, store, &disk_id, artifact->kind))
		r = replace_in(&replacing, objdir.path);
	if (r == 0)
		r = bid_other_paths_each(store, &disk_id, replace_noted, &replacing);
	if (r == 0 && path)
		r = replace_file(&replacing, path);
	return r < 0 ? r : replacing.names;
}

bool bid_rights_given(int fd, const struct stat *st)
{
	if (st->st_mode & (S_ISUID | S_ISGID))
		return true;
	return fgetxattr(fd, "security.capability", NULL, 0) >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
}

int bid_rights_strip(struct bid_store *store, const struct bid_artifact *artifact, int fd, const char *path, mode_t mode)
{
	struct bid_temp temp = BID_TEMP_NONE;
	struct stat st;
	int r = bid_temp_new(store, true, &temp);

	if (r == 0)
		r = bid_copy_file(fd, temp.fd);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0)
		r = bid_set_readers(temp.fd, mode & (bid_rights_given(fd, &st) ? 0444 : 0555), st.st_uid);
	if (r == 0 && fsync(temp.fd) < 0)
		r = -errno;
	if (r == 0)
		r = bid_replace(store, artifact, path, &st, temp.fd);
	bid_temp_release(&temp);
	return r < 0 ? r : 0;
}
