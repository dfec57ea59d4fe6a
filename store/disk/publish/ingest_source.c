// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ingest: the kind, the owner and the bytes of a file. */
#include "disk/publish/ingest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/access.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/mount.h"
#include "base/path.h"
#include "base/stamp.h"
#include "disk/layout.h"
#include "disk/publish/replace.h"

enum {
	LINKS_MAX = 60000, /* ext4 allows 65000; leave some to others */
	TRIES = 2, /* to have another name, or other rights, changes the times of a file, too */
	TICK_NS = 20 * 1000 * 1000,
	FULL = 1 << 20, /* bytes; with less free space the disk is full for any file */
};

/* Does another process have the file open for writing? Returns false if the kernel does not say. */
static bool is_open_for_writing(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	/* a caller with a writable descriptor knows its own writes */
	if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY)
		return false;
	/* an open(2) in between sends a signal to this process; SIGURG, unlike the default, does not end it */
	if (fcntl(fd, F_SETSIG, SIGURG) < 0)
		return false;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return errno == EAGAIN;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

/* Take the state of the file before the copy, for a comparison after it. Waits until a change would show. */
static int begin_copy(int fd, struct stat *ret_st, struct bid_stamp *ret_stamp)
{
	for (int tries = 0; tries < 2; tries++) {
		if (fstat(fd, ret_st) < 0)
			return -errno;
		*ret_stamp = bid_stamp_take(ret_st);
		if (!ret_stamp->racy)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = TICK_NS }, NULL);
	}
	return is_open_for_writing(fd) ? -EAGAIN : 0;
}

static uint64_t free_beside(int fd)
{
	struct statvfs space;

	/* a file system without such numbers shows a full disk only by a failing write */
	return fstatvfs(fd, &space) < 0 || space.f_blocks == 0 ? UINT64_MAX : (uint64_t)space.f_bavail * space.f_frsize;
}

/* If the file is too large for the free space, return -EFBIG: smaller files may still fit. */
static int copy_bytes(int from, const struct stat *st, int to, bool reflink)
{
	uint64_t left, needed = (uint64_t)st->st_blocks * 512;
	int r;

	if (reflink)
		return ioctl(to, FICLONE, from) < 0 ? -errno : 0;
	left = free_beside(to);
	if (needed > (uint64_t)st->st_size)
		needed = (uint64_t)st->st_size;
	if (left >= FULL && needed > left)
		return -EFBIG;
	r = bid_copy_file(from, to);
	/* a compressing source file system may count fewer blocks */
	if (r == -ENOSPC && left >= FULL && ftruncate(to, 0) == 0 && free_beside(to) >= FULL)
		r = -EFBIG;
	return r;
}

/* Copy the file into the empty file @to, or share its blocks. Returns as bid_ingest_fill(). */
static int copy_source(struct bid_ingest *ingest, int to, bool reflink)
{
	struct bid_elf_info info;
	struct bid_stamp stamp;
	struct stat before, after;

	for (int tries = 0; tries < TRIES; tries++) {
		int r = begin_copy(ingest->fd, &before, &stamp);

		if (r == 0 && tries > 0 && ftruncate(to, 0) < 0)
			r = -errno;
		if (r == 0)
			r = copy_bytes(ingest->fd, &before, to, reflink);
		if (r < 0)
			return r;
		if (fstat(ingest->fd, &after) < 0)
			return -errno;
		if (!bid_stamp_is_of(&stamp, &after))
			continue;
		if (ingest->info.id.len > 0) {
			r = bid_elf_examine(to, &info);
			if (r < 0 || !bid_id_equal(&info.id, &ingest->info.id))
				return r == -ENOMEM ? r : -EAGAIN; /* the file was replaced before */
		}
		ingest->st = before;
		return 0;
	}
	return -EAGAIN;
}

/* Return the path that the file @fd with @st has or had, even if it is renamed or removed meanwhile. */
static int read_path(int fd, const struct stat *st, char ret_path[static PATH_MAX])
{
	int r = bid_path_of(fd, ret_path, PATH_MAX);

	if (r == 0 && ret_path[0] != '/')
		r = -ENAMETOOLONG;
	if (r == 0 && st->st_nlink == 0)
		bid_path_strip_deleted(ret_path);
	return r;
}

static int unpack_source(struct bid_store *store, struct bid_ingest *ingest)
{
	int r = ingest->temp.fd < 0 ? bid_temp_new(store, false, &ingest->temp) : 0;

	if (r == 0)
		r = bid_elf_unpack_to(ingest->fd, BID_ELF_UNPACKED_MAX, ingest->temp.fd);
	if (r == 0)
		r = bid_elf_examine(ingest->temp.fd, &ingest->info);
	ingest->packed = true;
	return r;
}

int bid_ingest_examine(struct bid_store *store, struct bid_ingest *ingest)
{
	int r = ingest->is_elf ? 0 : bid_elf_is_packed(ingest->fd);

	if (r < 0)
		return r;
	r = r ? unpack_source(store, ingest) : bid_elf_examine(ingest->fd, &ingest->info);
	if (r < 0)
		return r;
	/* an id of one byte has no link in perf's layout: the name of a link is the rest after the first byte */
	return ingest->info.id.len > 1 ? 0 : -ENODATA;
}

int bid_ingest_open(const struct bid_add *add, struct bid_ingest *ingest)
{
	int r = 0;

	ingest->temp = BID_TEMP_NONE;
	ingest->own_fd = add->fd < 0;
	ingest->clean_before = add->clean_before;
	ingest->fd = add->fd < 0 ? open(add->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : add->fd;
	if (ingest->fd < 0 || fstat(ingest->fd, &ingest->st) < 0)
		return -errno;
	if (!S_ISREG(ingest->st.st_mode))
		return -EINVAL;
	if (ingest->own_fd)
		r = read_path(ingest->fd, &ingest->st, ingest->path);
	else if (strlen(add->path) >= sizeof(ingest->path))
		r = -ENAMETOOLONG;
	else
		memcpy(ingest->path, add->path, strlen(add->path) + 1);
	if (r < 0)
		return r;
	return bid_layout_is_original(ingest->path) ? 0 : -EINVAL;
}

bool bid_ingest_is_own(const struct bid_store *store, const struct bid_ingest *ingest)
{
	size_t len = strlen(bid_store_path(store));

	return strncmp(ingest->path, bid_store_path(store), len) == 0 && ingest->path[len] == '/';
}

int bid_ingest_begin(struct bid_store *store, const struct bid_add *add, struct bid_ingest *ingest)
{
	int r = bid_ingest_open(add, ingest);

	if (r < 0)
		return r;
	/* a file in a mount of bidfs comes from a store, and its path there is another one */
	ingest->is_unnamed = bid_ingest_is_own(store, ingest) || bid_is_in_mount(ingest->fd, &ingest->st);
	return bid_ingest_examine(store, ingest);
}

/* May all users read the file at its path? */
static bool is_public(struct bid_store *store, const struct bid_ingest *ingest)
{
	struct stat st;

	if (ingest->is_reached)
		return bid_fstat(ingest->fd, &st) == 0 && bid_all_read(st.st_mode);
	return bid_is_public(ingest->fd, &ingest->st, bid_store_path(store));
}

bool bid_ingest_may_link(struct bid_store *store, const struct bid_ingest *ingest)
{
	const struct stat *st = &ingest->st;

	return ingest->is_staged || (st->st_nlink < LINKS_MAX && !bid_rights_given(ingest->fd, st) && is_public(store, ingest));
}

mode_t bid_ingest_mode(struct bid_store *store, const struct bid_ingest *ingest)
{
	if (!is_public(store, ingest))
		return S_IRUSR;
	return ingest->st.st_mode & (bid_rights_given(ingest->fd, &ingest->st) ? 0444 : 0555);
}

int bid_ingest_fill(struct bid_store *store, struct bid_ingest *ingest, bool reflink, enum bid_durability durability)
{
	int r = 0;

	if (!ingest->packed) {
		if (ingest->temp.fd < 0)
			r = bid_temp_new(store, false, &ingest->temp);
		if (r == 0)
			r = copy_source(ingest, ingest->temp.fd, reflink);
	}
	if (r < 0)
		return r;
	r = bid_set_readers(ingest->temp.fd, bid_ingest_mode(store, ingest), geteuid());
	if (r < 0)
		return r;
	return durability != BID_DURABLE_LATER && fsync(ingest->temp.fd) < 0 ? -errno : 0;
}

void bid_ingest_release(struct bid_ingest *ingest)
{
	bid_temp_release(&ingest->temp);
	if (ingest->own_fd)
		bid_close(ingest->fd);
	ingest->fd = -1;
	ingest->own_fd = false;
}
