// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/derive/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/limits.h"

static int by_inode(const void *a, const void *b)
{
	const struct stat *one = a, *two = b;

	return one->st_ino < two->st_ino ? -1 : one->st_ino > two->st_ino;
}

/* List the files among our descriptors on the file system of @like. A duplicate of a descriptor counts as an open file too. */
static int list_files(const struct stat *like, struct stat **files, size_t *n)
{
	bid_auto_dir DIR *descriptors = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t room = 0;

	if (!descriptors)
		return -errno;
	while ((entry = readdir(descriptors))) {
		struct stat st;

		/* by the name: another thread may close the descriptor meanwhile */
		if (entry->d_name[0] == '.' || fstatat(dirfd(descriptors), entry->d_name, &st, 0) < 0 ||
		    st.st_dev != like->st_dev || st.st_nlink > 0)
			continue;
		if (bid_array_grow(*files, *n, room) < 0)
			return -ENOMEM;
		(*files)[(*n)++] = st;
	}
	return 0;
}

/* Sum up the bytes of all open files on the file system of @fd, a file in memory. */
static int count_bytes(int fd, uint64_t *ret_bytes)
{
	bid_auto_free struct stat *files = NULL;
	uint64_t bytes = 0;
	struct stat like;
	size_t n = 0;
	int r;

	if (fstat(fd, &like) < 0)
		return -errno;
	r = list_files(&like, &files, &n);
	if (r < 0)
		return r;
	if (n > 0)
		qsort(files, n, sizeof(*files), by_inode);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || files[i].st_ino != files[i - 1].st_ino)
			bytes += (uint64_t)files[i].st_size;
	*ret_bytes = bytes;
	return 0;
}

int bid_memory_new(uint64_t size, int *ret_fd)
{
	bid_auto_fd int fd = memfd_create("bid-derived", MFD_CLOEXEC);
	uint64_t bytes;
	int r;

	if (fd < 0)
		return -errno;
	if (size > BID_LIMIT_MEMORY)
		return -ENOMEM;
	/* set the size first, so that a counting thread includes it */
	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	r = count_bytes(fd, &bytes);
	if (r < 0)
		return r;
	if (bytes > BID_LIMIT_MEMORY)
		return -ENOMEM;
	*ret_fd = bid_steal_fd(&fd);
	return 0;
}

int bid_memory_left(uint64_t *ret_left)
{
	bid_auto_fd int fd = memfd_create("bid-none", MFD_CLOEXEC);
	uint64_t bytes;
	int r;

	if (fd < 0)
		return -errno;
	r = count_bytes(fd, &bytes);
	if (r == 0)
		*ret_left = bytes < BID_LIMIT_MEMORY ? BID_LIMIT_MEMORY - bytes : 0;
	return r;
}
