// SPDX-License-Identifier: LGPL-2.1-or-later
/* The bytes of a file that others may be writing. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/stamp.h"
#include "disk/publish/add.h"

enum {
	TRIES = 2, /* to have another name, or other rights, changes the times of a file, too */
	TICK_NS = 20 * 1000 * 1000,
	FULL = 1 << 20, /* bytes: with less than that free, a disk is full for any file */
};

/* Has somebody else the file open for writing? Where nobody may ask, or none can tell, it is taken for no. */
static bool is_open_for_writing(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	/* who hands it over open for writing knows what he writes */
	if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY)
		return false;
	/* whoever opens it in between has us sent a signal, which by default ends the program, but for this one */
	if (fcntl(fd, F_SETSIG, SIGURG) < 0)
		return false;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return errno == EAGAIN;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

/* What the file is to be when it was copied, unless it is changed. Waits until a change would show. */
static int begin(int fd, struct stat *ret_st, struct bid_stamp *ret_stamp)
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

	/* of a disk that does not tell it is found out by writing */
	return fstatvfs(fd, &space) < 0 || space.f_blocks == 0 ? UINT64_MAX : (uint64_t)space.f_bavail * space.f_frsize;
}

/* A file for which alone there is no room is no trouble of the disk: others may fit. */
static int copy(int from, const struct stat *st, int to, bool reflink)
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
	/* its blocks may be fewer at its source, which compresses them */
	if (r == -ENOSPC && left >= FULL && ftruncate(to, 0) == 0 && free_beside(to) >= FULL)
		r = -EFBIG;
	return r;
}

int bid_adding_copy(struct bid_adding *adding, int to, bool reflink)
{
	struct bid_elf_info info;
	struct bid_stamp stamp;
	struct stat before, after;

	for (int tries = 0; tries < TRIES; tries++) {
		int r = begin(adding->fd, &before, &stamp);

		if (r == 0 && tries > 0 && ftruncate(to, 0) < 0)
			r = -errno;
		if (r == 0)
			r = copy(adding->fd, &before, to, reflink);
		if (r < 0)
			return r;
		if (fstat(adding->fd, &after) < 0)
			return -errno;
		if (!bid_stamp_is_of(&stamp, &after))
			continue;
		if (adding->info.id.len > 0) {
			r = bid_elf_examine(to, &info);
			if (r < 0 || !bid_id_equal(&info.id, &adding->info.id))
				return r == -ENOMEM ? r : -EAGAIN; /* it became another one before */
		}
		adding->st = before;
		return 0;
	}
	return -EAGAIN;
}
