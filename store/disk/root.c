// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

static int open_beneath(int root, const char *path, int flags, uint64_t resolve, int *ret_fd)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};
	long fd;

	/* EAGAIN: something was renamed while the kernel looked; it asks to be called again */
	for (int i = 0; i < 16; i++) {
		fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	if (fd >= 0) {
		*ret_fd = (int)fd;
		return 0;
	}
	if (errno == ELOOP || errno == EXDEV || errno == ENOTDIR)
		return -ENOENT;
	return -errno;
}

int bid_root_open(int root, const char *path, int flags, int *ret_fd)
{
	return open_beneath(root, path, flags | O_NOFOLLOW, RESOLVE_NO_SYMLINKS, ret_fd);
}

int bid_root_open_linked(int root, const char *path, int flags, int *ret_fd)
{
	return open_beneath(root, path, flags, 0, ret_fd);
}

int bid_root_opendir(int root, const char *path, DIR **ret_dir)
{
	bid_auto_fd int fd = -1;
	DIR *dir;
	int r;

	r = bid_root_open(root, path, O_RDONLY | O_DIRECTORY, &fd);
	if (r < 0)
		return r;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	bid_steal_fd(&fd);
	*ret_dir = dir;
	return 0;
}

int bid_root_stat(int root, const char *path, struct stat *ret_stat)
{
	bid_auto_fd int fd = -1;
	int r;

	r = bid_root_open(root, path, O_PATH, &fd);
	if (r < 0)
		return r;
	return fstat(fd, ret_stat) < 0 ? -errno : 0;
}

/* Open the directory that @path is in; @ret_name points at the last component inside @path. */
static int open_parent(int root, const char *path, int *ret_fd, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];
	size_t len = slash ? (size_t)(slash - path) : 0;
	int r;

	if (len >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, len);
	parent[len] = '\0';
	r = bid_root_open(root, parent, O_PATH | O_DIRECTORY, ret_fd);
	if (r < 0)
		return r;
	*ret_name = slash ? slash + 1 : path;
	return 0;
}

int bid_root_readlink(int root, const char *path, char *ret_text, size_t size)
{
	bid_auto_fd int parent = -1;
	const char *name;
	char text[PATH_MAX];
	ssize_t len;
	int r;

	r = open_parent(root, path, &parent, &name);
	if (r < 0)
		return r;
	len = readlinkat(parent, name, text, sizeof(text));
	if (len < 0)
		return -errno;
	if ((size_t)len >= size || (size_t)len == sizeof(text))
		return -ENAMETOOLONG;
	memcpy(ret_text, text, (size_t)len);
	ret_text[len] = '\0';
	return 0;
}

int bid_root_mkdirs(int root, const char *path, bool durable, int *ret_fd)
{
	bid_auto_fd int dir = -1;
	char name[NAME_MAX + 1];
	int r;

	r = bid_root_open(root, path, O_RDONLY | O_DIRECTORY, ret_fd);
	if (r != -ENOENT)
		return r;

	r = bid_root_open(root, "", O_RDONLY | O_DIRECTORY, &dir);
	for (const char *at = path; r >= 0 && *at;) {
		size_t len = strcspn(at, "/");
		int next = -1;

		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, at, len);
		name[len] = '\0';
		if (mkdirat(dir, name, 0755) == 0) {
			if (durable && fsync(dir) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
		r = bid_root_open(dir, name, O_RDONLY | O_DIRECTORY, &next);
		if (r < 0)
			break;
		close(dir);
		dir = next;
		at += len + (at[len] == '/');
	}
	if (r < 0)
		return r == -ENOENT ? -ENOTDIR : r; /* it was made or is there, so something else is in the way */
	*ret_fd = bid_steal_fd(&dir);
	return 0;
}
