// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

ssize_t bid_pread_least(int fd, void *buffer, size_t least, size_t room, off_t offset)
{
	size_t done = 0;

	while (done < least) {
		ssize_t n = pread(fd, (char *)buffer + done, room - done, offset + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int bid_pwrite_full(int fd, const void *buffer, size_t len, off_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, (const char *)buffer + done, len - done, offset + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

int bid_write_back(int fd)
{
	unsigned flags = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	return sync_file_range(fd, 0, 0, flags) < 0 ? -errno : 0;
}

static size_t at_most(uint64_t left, size_t chunk)
{
	return left < chunk ? (size_t)left : chunk;
}

static int copy_to(int from, off_t offset, uint64_t len, int to, off_t to_offset)
{
	enum { CHUNK = 1 << 20 };
	bid_auto_free char *buffer = NULL;
	uint64_t done = 0;
	ssize_t n;

	/* ends at the end of the file, or where the kernel does not copy between the two; the loop below copies the rest */
	while (done < len && (n = copy_file_range(from, &(off_t){ offset + (off_t)done }, to, &(off_t){ to_offset + (off_t)done },
						  at_most(len - done, CHUNK * 64), 0)) > 0)
		done += (uint64_t)n;
	if (done < len && !(buffer = malloc(CHUNK)))
		return -ENOMEM;
	while (done < len) {
		int r;

		n = bid_pread_full(from, buffer, at_most(len - done, CHUNK), offset + (off_t)done);
		if (n <= 0)
			return (int)n;
		r = bid_pwrite_full(to, buffer, (size_t)n, to_offset + (off_t)done);
		if (r < 0)
			return r;
		done += (uint64_t)n;
	}
	return 0;
}

/* May the file have holes? Also where the file system reports no blocks. */
static bool may_have_holes(int fd, const struct stat *st)
{
	return st->st_size > (off_t)st->st_blocks * 512 && lseek(fd, 0, SEEK_HOLE) >= 0;
}

int bid_copy_range(int from, off_t offset, uint64_t len, int to, off_t to_offset)
{
	off_t at = offset, end = offset + (off_t)len, data, hole;
	struct stat st;
	int r = 0;

	if (fstat(from, &st) < 0)
		return -errno;
	if (!may_have_holes(from, &st))
		return copy_to(from, offset, len, to, to_offset);
	for (; r == 0 && at < end; at = hole) {
		data = lseek(from, at, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : -errno;
		if (data >= end)
			return 0;
		hole = lseek(from, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		if (hole > end)
			hole = end;
		r = copy_to(from, data, (uint64_t)(hole - data), to, to_offset + data - offset);
	}
	return r;
}

int bid_copy_file(int from, int to)
{
	struct stat st;

	if (fstat(from, &st) < 0)
		return -errno;
	/* files of /proc have no size */
	if (st.st_size == 0 || !may_have_holes(from, &st))
		return copy_to(from, 0, UINT64_MAX, to, 0);
	if (ftruncate(to, st.st_size) < 0)
		return -errno;
	return bid_copy_range(from, 0, (uint64_t)st.st_size, to, 0);
}

int bid_read_file(int fd, size_t max, char **ret_data, size_t *ret_len)
{
	bid_auto_free char *data = NULL;
	size_t len = 0, room = 4096;

	for (;;) {
		char *larger = realloc(data, room + 1);
		ssize_t n;

		if (!larger)
			return -ENOMEM;
		data = larger;
		n = bid_pread_full(fd, data + len, room - len, (off_t)len);
		if (n < 0)
			return (int)n;
		len += (size_t)n;
		if (len < room)
			break;
		if (len > max)
			return -EFBIG;
		room *= 2;
	}
	if (len > max)
		return -EFBIG;
	data[len] = '\0';
	*ret_data = bid_steal(data);
	*ret_len = len;
	return 0;
}

off_t bid_next_data(int fd, off_t at, off_t size)
{
	off_t data = at < size ? lseek(fd, at, SEEK_DATA) : at;

	if (data < 0)
		return errno == ENXIO ? size : at;
	return data;
}

int bid_same_bytes(int one, int other)
{
	char a[16384], b[16384];
	struct stat st, another;
	off_t at = 0;

	if (fstat(one, &st) < 0 || fstat(other, &another) < 0)
		return -errno;
	if (st.st_size != another.st_size)
		return 0;
	for (;;) {
		off_t here = bid_next_data(one, at, st.st_size), there = bid_next_data(other, at, st.st_size);
		ssize_t n, m;

		at = here < there ? here : there;
		n = bid_pread_full(one, a, sizeof(a), at);
		m = bid_pread_full(other, b, sizeof(b), at);

		if (n < 0 || m < 0)
			return (int)(n < 0 ? n : m);
		if (n != m || memcmp(a, b, (size_t)n) != 0)
			return 0;
		if (n == 0)
			return 1;
		at += n;
	}
}

bool bid_lease_refused(int fd, int type)
{
	/* an open(2) in between sends a signal to this process; SIGURG, unlike the default, does not end it */
	bool refused = fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, type) < 0 && errno == EAGAIN;

	fcntl(fd, F_SETLEASE, F_UNLCK);
	return refused;
}

int bid_touch(int dir, const char *name, const struct timespec times[2])
{
	bid_auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 || futimens(fd, times) < 0 ? -errno : 0;
}
