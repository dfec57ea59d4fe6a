// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

enum { AGAIN_AT_ONCE = 16, AGAIN_AFTER_MS = 1000 };

static int open_beneath(int root, const char *path, int flags, uint64_t resolve, int *ret_fd)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};
	long fd;

	/*
	 * EAGAIN: a rename happened during the lookup, and the kernel wants another call. Or another process holds a lease on the
	 * file (fcntl(2)), as editors of probe definitions do, and the kernel has revoked it.
	 */
	for (int i = 0; i < AGAIN_AT_ONCE + AGAIN_AFTER_MS; i++) {
		if (i >= AGAIN_AT_ONCE)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 1000000 }, NULL);
		fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	if (fd >= 0) {
		*ret_fd = (int)fd;
		return 0;
	}
	return errno == ELOOP || errno == ENOTDIR ? -ENOENT : -errno;
}

int bid_beneath_open(int root, const char *path, int flags, int *ret_fd)
{
	int r = open_beneath(root, path, flags | O_NOFOLLOW, RESOLVE_NO_SYMLINKS, ret_fd);

	return r == -EXDEV ? -ENOENT : r;
}

int bid_beneath_open_linked(int root, const char *path, int flags, const char *const *dirs, int *ret_fd)
{
	int r = open_beneath(root, path, flags, 0, ret_fd);

	if (r != -EXDEV)
		return r;
	r = bid_path_open_linked(root, path, flags, dirs);
	if (r >= 0)
		*ret_fd = r;
	return r < 0 ? r : 0;
}

int bid_beneath_opendir(int root, const char *path, DIR **ret_dir)
{
	bid_auto_fd int fd = -1;
	DIR *dir;
	int r;

	r = bid_beneath_open(root, path, O_RDONLY | O_DIRECTORY, &fd);
	if (r < 0)
		return r;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	bid_steal_fd(&fd);
	*ret_dir = dir;
	return 0;
}

int bid_beneath_readlink(int dir, const char *name, char ret_text[static PATH_MAX])
{
	ssize_t len = readlinkat(dir, name, ret_text, PATH_MAX);

	if (len < 0)
		return -errno;
	if (len == PATH_MAX)
		return -ENAMETOOLONG;
	ret_text[len] = '\0';
	return 0;
}

int bid_beneath_stat(int root, const char *path, struct stat *ret_stat)
{
	bid_auto_fd int fd = -1;
	int r;

	r = bid_beneath_open(root, path, O_PATH, &fd);
	if (r < 0)
		return r;
	return fstat(fd, ret_stat) < 0 ? -errno : 0;
}

int bid_beneath_sync(int root, const char *path, unsigned above)
{
	char there[PATH_MAX];

	if (snprintf(there, sizeof(there), "%s", path) >= (int)sizeof(there))
		return -ENAMETOOLONG;
	for (;; above--) {
		bid_auto_fd int dir = -1;
		int r = bid_beneath_open(root, there, O_RDONLY | O_DIRECTORY, &dir);
		char *slash;

		if (r == 0 && fsync(dir) < 0)
			r = -errno;
		/* another process removed it as empty */
		if (r < 0 && r != -ENOENT)
			return r;
		if (above == 0 || !*there)
			return 0;
		slash = strrchr(there, '/');
		*(slash ? slash : there) = '\0';
	}
}

static unsigned count_components(const char *path)
{
	unsigned n = 1;

	while ((path = strchr(path, '/'))) {
		path++;
		n++;
	}
	return n;
}

/* Make the missing directories of @path below @dir. Returns -ESTALE if a directory on the way was removed meanwhile. */
static int make_below(int dir, const char *rest, unsigned *made, int *ret_fd)
{
	bid_auto_fd int at = -1;
	char name[NAME_MAX + 1];
	struct stat st;
	int r;

	while (*rest) {
		size_t len = strcspn(rest, "/");
		int next = -1;

		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, rest, len);
		name[len] = '\0';
		if (mkdirat(dir, name, 0755) == 0) {
			unsigned n = count_components(rest);

			if (made && n > *made)
				*made = n;
		} else if (errno != EEXIST) {
			return errno == ENOENT ? -ESTALE : -errno;
		}
		r = bid_beneath_open(dir, name, O_RDONLY | O_DIRECTORY, &next);
		if (r == -ENOENT)
			/* a symbolic link or a file, or a directory removed just now and perhaps created again */
			return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) ? -ENOTDIR : -ESTALE;
		if (r < 0)
			return r;
		bid_close(at);
		at = dir = next;
		rest += len + (rest[len] == '/');
	}
	*ret_fd = bid_steal_fd(&at);
	return 0;
}

/* Open the last existing directory on the way to @path. @ret_rest is the rest of @path below it. */
static int open_existing(int root, const char *path, int *ret_fd, const char **ret_rest)
{
	size_t len = strlen(path);
	char above[PATH_MAX];
	int r = len < sizeof(above) ? -ENOENT : -ENAMETOOLONG;

	while (r == -ENOENT && len > 0) {
		for (len--; len > 0 && path[len] != '/'; len--)
			;
		memcpy(above, path, len);
		above[len] = '\0';
		r = bid_beneath_open(root, above, O_PATH | O_DIRECTORY, ret_fd);
	}
	*ret_rest = path + len + (path[len] == '/');
	return r;
}

int bid_beneath_mkdirs(int root, const char *path, unsigned *made, int *ret_fd)
{
	int r = -ESTALE;

	/* other processes remove empty directories while this one creates directories below them */
	for (int attempts = 0; attempts < 16 && r == -ESTALE; attempts++) {
		bid_auto_fd int existing = -1;
		const char *rest;

		r = bid_beneath_open(root, path, O_RDONLY | O_DIRECTORY, ret_fd);
		if (r == -ENOENT)
			r = open_existing(root, path, &existing, &rest);
		if (r == 0 && existing >= 0)
			r = make_below(existing, rest, made, ret_fd);
	}
	return r;
}

int bid_beneath_parent(int root, const char *path, int flags, int *ret_dir, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];

	if (snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path) >= (int)sizeof(parent))
		return -ENAMETOOLONG;
	*ret_name = slash ? slash + 1 : path;
	return flags & O_CREAT ? bid_beneath_mkdirs(root, parent, NULL, ret_dir)
			       : bid_beneath_open(root, parent, flags | O_DIRECTORY, ret_dir);
}

static int unlink_below(int root, const char *path, int flags)
{
	bid_auto_fd int dir = -1;
	const char *name;
	int r = bid_beneath_parent(root, path, O_PATH, &dir, &name);

	return r == 0 && unlinkat(dir, name, flags) < 0 ? -errno : r;
}

int bid_beneath_unlink(int root, const char *path)
{
	return unlink_below(root, path, 0);
}

int bid_beneath_rmdir(int root, const char *path)
{
	return unlink_below(root, path, AT_REMOVEDIR);
}

void bid_beneath_prune(int root, const char *path)
{
	char rest[PATH_MAX];

	snprintf(rest, sizeof(rest), "%s", path);
	while (*rest && bid_beneath_rmdir(root, rest) == 0)
		*(strrchr(rest, '/') ? strrchr(rest, '/') : rest) = '\0';
}

void bid_beneath_prune_above(int root, const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];

	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path);
	bid_beneath_prune(root, parent);
}
