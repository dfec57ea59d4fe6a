// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/io.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"

ssize_t bid_pread_full(int fd, void *buffer, size_t len, off_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)buffer + done, len - done, offset + (off_t)done);

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

int bid_copy_file(int from, int to)
{
	enum { CHUNK = 1 << 20 };
	bid_auto_free char *buffer = NULL;
	off_t at = 0;
	ssize_t n;

	/* ends at the end of the file, or where the kernel does not copy between the two; what is left is done by hand */
	while ((n = copy_file_range(from, &at, to, &(off_t){ at }, CHUNK * 64, 0)) > 0)
		;
	buffer = malloc(CHUNK);
	if (!buffer)
		return -ENOMEM;
	while ((n = bid_pread_full(from, buffer, CHUNK, at)) > 0) {
		int r = bid_pwrite_full(to, buffer, (size_t)n, at);

		if (r < 0)
			return r;
		at += n;
	}
	return (int)n;
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
