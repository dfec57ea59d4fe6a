// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"

static const char mark[] = " (deleted)";

const char *bid_fd_path(int fd, char buf[static BID_FD_PATH_MAX])
{
	snprintf(buf, BID_FD_PATH_MAX, "/proc/self/fd/%d", fd);
	return buf;
}

int bid_fd_link(int fd, int dir, const char *name)
{
	char path[BID_FD_PATH_MAX];

	return linkat(AT_FDCWD, bid_fd_path(fd, path), dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

int bid_path_of(int fd, char *ret_path, size_t size)
{
	char link[BID_FD_PATH_MAX];
	ssize_t len = readlink(bid_fd_path(fd, link), ret_path, size);

	if (len < 0)
		return -errno;
	if ((size_t)len >= size)
		return -ENAMETOOLONG;
	ret_path[len] = '\0';
	return 0;
}

static bool is_below(const char *path, const char *dir)
{
	/* "/" is above all */
	size_t len = dir[1] ? strlen(dir) : 0;

	return strncmp(path, dir, len) == 0 && path[len] == '/';
}

int bid_path_open_linked(int root, const char *name, int flags, const char *const *dirs)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	char path[PATH_MAX], top[PATH_MAX], link[BID_FD_PATH_MAX];
	bid_auto_fd int fd = -1;
	bool may;
	int r;

	if (!dirs)
		return -EXDEV;
	/* resolve the name before opening it */
	fd = (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	r = bid_path_of(fd, path, sizeof(path));
	if (r == 0)
		r = bid_path_of(root, top, sizeof(top));
	if (r < 0)
		return r;
	may = is_below(path, top);
	for (; *dirs && !may; dirs++)
		may = is_below(path, *dirs);
	if (!may)
		return -EXDEV;
	if (flags & O_PATH)
		return bid_steal_fd(&fd);
	r = open(bid_fd_path(fd, link), flags | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int bid_path_append_real(char ***dirs, const char *option, const char *value)
{
	bid_auto_free char *copy = strdup(value);
	char *rest = copy, *dir = copy;
	int r = copy ? 0 : -ENOMEM;

	while (r == 0 && (dir = strsep(&rest, ":"))) {
		char *real = realpath(dir, NULL);

		r = real ? bid_strings_append(dirs, real) : -errno;
	}
	if (r < 0)
		bid_error_about(dir ? dir : value, r, "%s: %s: '%s'", option, strerror(-r), dir ? dir : value);
	return r < 0 ? -EINVAL : 0;
}

bool bid_path_strip_deleted(char *path)
{
	size_t len = strlen(path);

	if (len < sizeof(mark) || strcmp(path + len - strlen(mark), mark) != 0)
		return false;
	path[len - strlen(mark)] = '\0';
	return true;
}

bool bid_path_is_plain(const char *path)
{
	size_t len;

	do {
		len = strcspn(path, "/");
		if (len == 0 || len > NAME_MAX || (len == 1 && path[0] == '.') || (len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += len;
	} while (*path++);
	return true;
}

bool bid_is_mount(const char *path)
{
	char status[PATH_MAX + sizeof("/.bidfs/status")];
	struct statfs st;

	snprintf(status, sizeof(status), "%s/.bidfs/status", path);
	return statfs(path, &st) == 0 && st.f_type == FUSE_SUPER_MAGIC && access(status, F_OK) == 0;
}

bool bid_is_in_mount(int fd, const struct stat *st)
{
	bid_auto_file FILE *table = NULL;
	bid_auto_free char *line = NULL;
	unsigned major, minor;
	struct statfs fs;
	size_t size = 0;

	if (fstatfs(fd, &fs) < 0 || fs.f_type != FUSE_SUPER_MAGIC)
		return false;
	table = fopen("/proc/self/mountinfo", "re");
	while (table && getline(&line, &size, table) > 0)
		if (strstr(line, " - fuse.bidfs ") && sscanf(line, "%*u %*u %u:%u", &major, &minor) == 2 &&
		    makedev(major, minor) == st->st_dev)
			return true;
	return false;
}
