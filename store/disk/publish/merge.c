// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "base/stat_data.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/objdir.h"
#include "disk/perf_link.h"
#include "disk/publish/replace.h"
#include "disk/store.h"

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

/* One of two files of the same name. */
enum winner { NEITHER, OF_FROM, OF_TO };

/* Which of two existing files stays, under both names? Returns a winner, or a negative errno. */
static int choose_winner(enum bid_kind kind, int from, int to)
{
	int same = bid_same_bytes(from, to);

	if (same != 0)
		return same < 0 ? same : OF_TO;
	if (kind != BID_KIND_DEBUGINFO || is_stripped(from) == is_stripped(to))
		return NEITHER;
	return is_stripped(to) ? OF_FROM : OF_TO;
}

/* bid_merge() of one kind */
static int merge_kind(struct bid_store *store, int from, int to, enum bid_kind kind)
{
	const char *name = bid_kind_store_name(kind);
	bid_auto_fd int from_fd = -1, to_fd = -1;
	struct stat st;
	int r;

	if (is_one_file(from, to, name))
		return 0;
	r = open_file(from, name, &from_fd, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = open_file(to, name, &to_fd, &st);
	if (r == -ENOENT) {
		r = bid_fd_link(from_fd, to, name);
		/* another process published one meanwhile */
		return r == -EEXIST ? 0 : r;
	}
	if (r == 0)
		r = choose_winner(kind, from_fd, to_fd);
	if (r <= 0)
		return r;
	return r == OF_FROM ? bid_replace_name(store, from_fd, to, name) : bid_replace_name(store, to_fd, from, name);
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
