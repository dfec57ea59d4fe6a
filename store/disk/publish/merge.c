// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "base/stat_data.h"
#include "disk/beneath.h"
#include "disk/check.h"
#include "disk/entries.h"
#include "disk/layout.h"
#include "disk/links.h"
#include "disk/store.h"

enum { SWEPT_MAX = 8 };

int bid_merge_file(struct bid_store *store, int fd, int to, const char *name)
{
	bid_auto_fd int temp = -1;
	char temp_name[32];
	uint64_t number;
	int r;

	r = bid_fd_link(fd, to, name);
	if (r != -EEXIST)
		return r;
	r = bid_beneath_mkdirs(bid_store_root(store), BID_LAYOUT_TEMP, false, &temp);
	if (r < 0)
		return r;
	/* a process that opens the store sweeps files without a writer's lock, and may be faster than the rename */
	r = -ENOENT;
	for (int attempts = 0; attempts < SWEPT_MAX && r == -ENOENT; attempts++) {
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		snprintf(temp_name, sizeof(temp_name), "temp-%016llx", (unsigned long long)number);
		r = bid_fd_link(fd, temp, temp_name);
		if (r == 0 && renameat(temp, temp_name, to, name) < 0)
			r = -errno;
		/* rename(2) leaves both names if they are one inode, and the first name if the directory was removed */
		unlinkat(temp, temp_name, 0);
	}
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

bool bid_merge_completes(const struct bid_elf_info *info, int fd)
{
	struct bid_elf_info other;

	if (!(info->has_dwarf || info->has_symtab) || bid_elf_examine(fd, &other) < 0 || other.has_dwarf)
		return false;
	return info->has_dwarf || !other.has_symtab;
}

/* the result for two files of one kind: ours in the entry, theirs in its target */
enum merge_outcome {
	APART, /* each keeps its own */
	OURS, /* the entry's serves both */
	THEIRS, /* the target's serves both */
	BESIDE, /* like THEIRS, and our file becomes the target's debug file */
};

static bool is_stripped(int fd)
{
	struct bid_elf_info info;

	return bid_elf_examine(fd, &info) == 0 && !info.has_dwarf && !info.has_symtab;
}

/* Has the directory @to room for a debug file? A stripped one takes none. */
static bool lacks_debug(int to)
{
	bid_auto_fd int fd = -1;
	struct stat st;
	int r = open_file(to, bid_kind_store_name(BID_KIND_DEBUGINFO), &fd, &st);

	return r == -ENOENT || (r == 0 && is_stripped(fd));
}

/* Put the file at @fd there. */
static int put_debug(struct bid_store *store, int fd, int to)
{
	const char *name = bid_kind_store_name(BID_KIND_DEBUGINFO);
	int r = bid_fd_link(fd, to, name);

	return r == -EEXIST && lacks_debug(to) ? bid_merge_file(store, fd, to, name) : r;
}

static int choose_file(int ours, int theirs, int to, enum bid_kind kind, bool expendable)
{
	struct bid_elf_info info;
	int r = bid_same_bytes(ours, theirs);

	if (r != 0)
		return r < 0 ? r : THEIRS;
	if (kind == BID_KIND_DEBUGINFO && is_stripped(theirs))
		return is_stripped(ours) ? THEIRS : OURS;
	if (kind == BID_KIND_DEBUGINFO && is_stripped(ours))
		return THEIRS;
	if (kind == BID_KIND_ELF && bid_elf_examine(ours, &info) == 0 && (info.has_dwarf || bid_merge_completes(&info, theirs)) &&
	    lacks_debug(to))
		return BESIDE;
	/* probe definitions are text written by users */
	return expendable && kind != BID_KIND_PROBES ? THEIRS : APART;
}

static bool is_one_file(int from, int to, const char *name)
{
	struct stat st, other;

	return fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && fstatat(to, name, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
	       bid_same_inode(&st, &other);
}

/* Join the files of one kind. Returns 1 if there is something to join; only looks if @store is NULL. */
static int join_kind(struct bid_store *store, int from, int to, enum bid_kind kind, bool expendable)
{
	const char *name = bid_kind_store_name(kind);
	bid_auto_fd int ours = -1, theirs = -1;
	struct stat st;
	int r, outcome;

	if (is_one_file(from, to, name))
		return 0;
	r = open_file(from, name, &ours, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = open_file(to, name, &theirs, &st);
	if (r == -ENOENT && store)
		r = bid_fd_link(ours, to, name);
	if (theirs < 0)
		return r < 0 && r != -ENOENT ? r : 1;
	outcome = choose_file(ours, theirs, to, kind, expendable);
	if (outcome <= APART || !store)
		return outcome < 0 ? outcome : outcome != APART;
	if (outcome == BESIDE)
		r = put_debug(store, ours, to);
	if (r == 0)
		r = outcome == OURS ? bid_merge_file(store, ours, to, name) : bid_merge_file(store, theirs, from, name);
	return r < 0 ? r : 1;
}

/* As join_kind(), of all kinds. */
static int join_kinds(struct bid_store *store, const struct bid_objdir *entry, int to, bool expendable)
{
	int r = 0, joined = 0;

	for (int kind = BID_KIND_NONE + 1; r >= 0 && kind < BID_KIND_COUNT; kind++) {
		if (!(entry->kinds & 1U << kind))
			continue;
		r = join_kind(store, entry->fd, to, (enum bid_kind)kind, expendable);
		joined |= r > 0;
	}
	return r < 0 ? r : joined;
}

int bid_merge(struct bid_store *store, const struct bid_objdir *entry, const char *target, bool expendable)
{
	bid_auto_fd int to = -1;
	int r;

	/* perf's old layout has room for one file only */
	if (entry->is_file)
		return -EOPNOTSUPP;
	r = bid_beneath_open(bid_store_root(store), target, O_RDONLY | O_DIRECTORY, &to);
	if (r == 0)
		r = join_kinds(store, entry, to, expendable);
	return r < 0 ? r : 0;
}

bool bid_merge_pending(struct bid_store *store, const struct bid_objdir *entry, const char *target)
{
	bid_auto_fd int to = -1;

	return bid_beneath_open(bid_store_root(store), target, O_RDONLY | O_DIRECTORY, &to) < 0 ||
	       join_kinds(NULL, entry, to, false) != 0;
}

int bid_merge_missing(struct bid_store *store, const char *from, const char *to, unsigned kinds)
{
	bid_auto_fd int source = -1, target = -1;
	int r;

	r = bid_beneath_open(bid_store_root(store), from, O_RDONLY | O_DIRECTORY, &source);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = bid_beneath_open(bid_store_root(store), to, O_RDONLY | O_DIRECTORY, &target);
	for (int kind = BID_KIND_NONE + 1; r == 0 && kind < BID_KIND_COUNT; kind++) {
		const char *name = bid_kind_store_name((enum bid_kind)kind);
		bid_auto_fd int fd = -1;
		struct stat st;

		if (!(kinds & 1U << kind))
			continue;
		r = open_file(source, name, &fd, &st);
		if (r == 0)
			r = bid_fd_link(fd, target, name);
		else if (r == -ENOENT)
			r = 0; /* another process removed it */
		if (r == -EEXIST)
			r = 0;
	}
	return r;
}

/* Does @objdir have a correct file of @kind? */
static bool is_right(struct bid_store *store, const char *objdir, const struct bid_id *filed, enum bid_kind kind)
{
	struct bid_request request = { .id = *filed, .kind = kind };
	struct bid_file file = BID_FILE_NONE;
	char path[BID_LAYOUT_FILE_MAX];
	int r;

	r = bid_check_open(store, bid_layout_file(objdir, kind, path), &request, &file);
	bid_file_release(&file);
	return r == 0;
}

/* Does @path have a file by which perf finds a build? */
static bool is_build(struct bid_store *store, const char *path, const struct bid_id *filed)
{
	return is_right(store, path, filed, BID_KIND_ELF) || is_right(store, path, filed, BID_KIND_KALLSYMS) ||
	       is_right(store, path, filed, BID_KIND_VDSO);
}

/* Add the correct files of the unnamed directory to @path. Returns as bid_merge(). */
static int join_unnamed(struct bid_store *store, const struct bid_id *filed, const char *unnamed, const char *path)
{
	struct bid_objdir entry = { .path = unnamed, .id = *filed };
	bid_auto_fd int dir = -1;
	int r = bid_beneath_open(bid_store_root(store), unnamed, O_RDONLY | O_DIRECTORY, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	entry.fd = dir;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (!bid_kind_is_elf((enum bid_kind)kind) || is_right(store, unnamed, filed, (enum bid_kind)kind))
			entry.kinds |= 1U << kind;
	return bid_merge(store, &entry, path, false);
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
		if (bid_beneath_stat(bid_store_root(store), there, &st) == 0 &&
		    bid_beneath_stat(bid_store_root(store), here, &other) == 0 && bid_same_inode(&st, &other))
			kinds |= 1U << kind;
	}
	bid_entry_take(store, unnamed, kinds);
}

int bid_merge_unnamed(struct bid_store *store, const struct bid_id *id, const char *path, bool durable)
{
	struct bid_id filed = bid_layout_filed(id);
	char unnamed[BID_LAYOUT_MAX];
	int r;

	if (!is_build(store, path, &filed))
		return -EBADMSG;
	bid_layout_under(BID_STORE_UNNAMED, &filed, unnamed);
	r = join_unnamed(store, &filed, unnamed, path);
	if (r == 0)
		r = bid_link_point(store, &filed, path);
	/* again, for files that another process published there before the link changed */
	if (r == 0)
		r = join_unnamed(store, &filed, unnamed, path);
	if (r == 0 && durable)
		r = bid_store_sync(store);
	if (r == 0)
		take_away(store, unnamed, path);
	return r;
}
