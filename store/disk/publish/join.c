// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <bid/elf.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "disk/aside.h"
#include "disk/layout.h"
#include "disk/root.h"
#include "disk/store.h"

enum { SWEPT_MAX = 8 };

int bid_join_file(struct bid_store *store, int fd, int to, const char *name)
{
	bid_auto_fd int temp = -1;
	char temp_name[32];
	uint64_t number;
	int r;

	r = bid_fd_link(fd, to, name);
	if (r != -EEXIST)
		return r;
	r = bid_root_mkdirs(bid_store_root(store), BID_LAYOUT_TEMP, false, &temp);
	if (r < 0)
		return r;
	/* who opens the store sweeps what no writer holds, and may be faster than the rename */
	r = -ENOENT;
	for (int tries = 0; tries < SWEPT_MAX && r == -ENOENT; tries++) {
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		snprintf(temp_name, sizeof(temp_name), "temp-%016llx", (unsigned long long)number);
		r = bid_fd_link(fd, temp, temp_name);
		if (r == 0 && renameat(temp, temp_name, to, name) < 0)
			r = -errno;
		/* rename(2) of one inode onto itself leaves both names, and into a directory that has gone the first one */
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

bool bid_join_completes(const struct bid_elf_info *info, int fd)
{
	struct bid_elf_info other;

	if (!(info->has_dwarf || info->has_symtab) || bid_elf_examine(fd, &other) < 0 || other.has_dwarf)
		return false;
	return info->has_dwarf || !other.has_symtab;
}

/* Both have a file of this kind, and they differ: keep what readers would miss, and the rest out of the way. */
static int settle(struct bid_store *store, const char *path, int fd, int other, int to, const struct bid_request *request,
		  bool expendable)
{
	const char *debug = bid_kind_store_name(BID_KIND_DEBUGINFO);
	char aside[PATH_MAX];
	struct bid_elf_info info;

	if (request->kind == BID_KIND_ELF && bid_elf_examine(fd, &info) == 0 &&
	    (info.has_dwarf || bid_join_completes(&info, other)) && bid_fd_link(fd, to, debug) == 0)
		return 0;
	return expendable ? 0 : bid_aside_move(store, path, fd, request, aside, sizeof(aside));
}

static int join_kind(struct bid_store *store, const struct bid_place_of *entry, int from, int to, enum bid_kind kind,
		     bool expendable)
{
	struct bid_request request = { .id = entry->id, .kind = kind };
	const char *name = bid_kind_store_name(kind);
	char path[PATH_MAX + 16];
	bid_auto_fd int ours = -1, theirs = -1;
	struct stat st, other;
	int r;

	r = open_file(from, name, &ours, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = open_file(to, name, &theirs, &other);
	if (r == -ENOENT)
		return bid_fd_link(ours, to, name);
	if (r < 0 || (st.st_ino == other.st_ino && st.st_dev == other.st_dev))
		return r;
	r = st.st_size == other.st_size ? bid_same_bytes(ours, theirs) : 0;
	if (r < 0)
		return r;
	/* probe definitions are text that users made: where they differ, each name has its own */
	if (r == 0 && kind == BID_KIND_PROBES)
		return 0;
	if (r == 0) {
		snprintf(path, sizeof(path), "%s/%s", entry->path, name);
		r = settle(store, path, ours, theirs, to, &request, expendable);
		if (r < 0)
			return r;
	}
	return bid_join_file(store, theirs, from, name);
}

int bid_join(struct bid_store *store, const struct bid_place_of *entry, const char *target, bool expendable)
{
	bid_auto_fd int to = -1;
	int r;

	/* perf's old layout has no place for more than one file */
	if (entry->is_file)
		return -EOPNOTSUPP;
	r = bid_root_open(bid_store_root(store), target, O_RDONLY | O_DIRECTORY, &to);
	for (int kind = BID_KIND_NONE + 1; r == 0 && kind < BID_KIND_COUNT; kind++)
		if (entry->kinds & 1U << kind)
			r = join_kind(store, entry, entry->fd, to, (enum bid_kind)kind, expendable);
	return r;
}

int bid_join_missing(struct bid_store *store, const char *from, const char *to, unsigned kinds)
{
	bid_auto_fd int source = -1, target = -1;
	int r;

	r = bid_root_open(bid_store_root(store), from, O_RDONLY | O_DIRECTORY, &source);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = bid_root_open(bid_store_root(store), to, O_RDONLY | O_DIRECTORY, &target);
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
			r = 0; /* somebody else removed it */
		if (r == -EEXIST)
			r = 0;
	}
	return r;
}
