// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/proc_maps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

/* Parse a line of maps. Returns false unless it maps a file as code. */
static bool parse_line(char *line, struct ctl_mapping *ret_mapping)
{
	unsigned long long inode;
	unsigned major, minor;
	char permissions[8];
	int path = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %7s %*x %x:%x %llu %n", &ret_mapping->start, &ret_mapping->end, permissions, &major, &minor,
		   &inode, &path) != 6)
		return false;
	ret_mapping->dev = makedev(major, minor);
	ret_mapping->ino = (ino_t)inode;
	ret_mapping->path = line + path;
	return permissions[2] == 'x' && inode != 0 && ret_mapping->path[0] == '/';
}

static int read_maps(int process, int (*fn)(void *user, const struct ctl_mapping *mapping), void *user, bool *ret_empty)
{
	int maps = openat(process, "maps", O_RDONLY | O_CLOEXEC);
	bid_auto_file FILE *file = maps >= 0 ? fdopen(maps, "re") : NULL;
	bid_auto_free char *line = NULL;
	size_t size = 0;
	int r = 0;

	*ret_empty = true;
	if (!file) {
		r = errno == EACCES || errno == EPERM ? -EACCES : 0;
		bid_close(maps);
		return r;
	}
	while (r == 0 && getline(&line, &size, file) > 0) {
		struct ctl_mapping mapping = { .process = process };

		*ret_empty = false;
		if (parse_line(line, &mapping))
			r = fn(user, &mapping);
	}
	/* maps of a process without read permission can be opened, but not read */
	if (r == 0 && ferror(file) && (errno == EACCES || errno == EPERM))
		r = -EACCES;
	return r;
}

/* Open /proc/@id, of a process or a thread. /proc has threads too, without listing them; task/ID has no map_files. */
static int open_task(const char *id)
{
	char path[sizeof("/proc/") + NAME_MAX];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s", id);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Read the maps of the other threads: after the end of the first thread its directory is empty, while the others have all mappings.
 */
static int read_threads(int process, const char *pid, int (*fn)(void *user, const struct ctl_mapping *mapping), void *user)
{
	int fd = openat(process, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bid_auto_dir DIR *tasks = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool empty = true;
	int r = 0;

	if (!tasks)
		bid_close(fd);
	while (r == 0 && empty && tasks && (entry = readdir(tasks))) {
		bid_auto_fd int thread = -1;

		if (!isdigit((unsigned char)entry->d_name[0]) || strcmp(entry->d_name, pid) == 0)
			continue;
		thread = open_task(entry->d_name);
		if (thread >= 0)
			r = read_maps(thread, fn, user, &empty);
	}
	return r;
}

int ctl_maps_each(const char *pid, int (*fn)(void *user, const struct ctl_mapping *mapping), void *user)
{
	bid_auto_fd int process = open_task(pid);
	bool empty;
	int r;

	if (process < 0)
		return process;
	r = read_maps(process, fn, user, &empty);
	return r == 0 && empty ? read_threads(process, pid, fn, user) : r;
}

/* Decode a newline in a path, which only maps writes as "\012". */
static void unescape_path(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to++ = '\n';
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

static int stat_regular(int dir, const char *name, struct stat *ret_stat)
{
	struct stat st;

	if (fstatat(dir, name, &st, 0) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_stat = st;
	return 0;
}

/* Open a regular file. The open(2) of a device may have side effects. */
static int open_regular(int dir, const char *name)
{
	struct stat st;
	int fd, r = stat_regular(dir, name, &st);

	if (r < 0)
		return r;
	fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void link_of(const struct ctl_mapping *mapping, char ret_link[static 64])
{
	snprintf(ret_link, 64, "map_files/%llx-%llx", mapping->start, mapping->end);
}

/* Copy the path that the process sees. Returns -ESTALE for a deleted file. */
static int path_of(const struct ctl_mapping *mapping, char ret_path[static PATH_MAX])
{
	if (strlen(mapping->path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_path, mapping->path, strlen(mapping->path) + 1);
	unescape_path(ret_path);
	return bid_path_strip_deleted(ret_path) ? -ESTALE : 0;
}

/* Open the root of the process, and stat(2) @path below it. Returns -ESTALE unless the path still leads to the mapped file. */
static int stat_by_path(const struct ctl_mapping *mapping, const char *path, int *ret_root, struct stat *ret_stat)
{
	/* O_PATH first, which has no side effect on any kind of file */
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	bid_auto_fd int root = openat(mapping->process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bid_auto_fd int fd = -1;

	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return -errno;
	/* the inode alone, because some file systems show two device numbers */
	if (!S_ISREG(ret_stat->st_mode) || ret_stat->st_ino != mapping->ino)
		return -ESTALE;
	*ret_root = bid_steal_fd(&root);
	return 0;
}

static int open_by_path(const struct ctl_mapping *mapping, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	bid_auto_fd int root = -1;
	struct stat st;
	int fd, r = stat_by_path(mapping, path, &root, &st);

	if (r < 0)
		return r;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* Open the running program: permission to inspect the process is enough, even for a deleted file. */
static int open_program(const struct ctl_mapping *mapping)
{
	struct stat st;

	if (fstatat(mapping->process, "exe", &st, 0) < 0)
		return -errno;
	return st.st_ino == mapping->ino ? open_regular(mapping->process, "exe") : -ESTALE;
}

int ctl_mapping_stat(const struct ctl_mapping *mapping, struct stat *ret_stat)
{
	bid_auto_fd int root = -1;
	char link[64], path[PATH_MAX];
	struct stat st;
	int r;

	link_of(mapping, link);
	if (stat_regular(mapping->process, link, ret_stat) == 0)
		return 0;
	r = path_of(mapping, path);
	if (r == 0)
		r = stat_by_path(mapping, path, &root, &st);
	if (r < 0 && (fstatat(mapping->process, "exe", &st, 0) < 0 || st.st_ino != mapping->ino))
		return r;
	*ret_stat = st;
	return 0;
}

int ctl_mapping_open(const struct ctl_mapping *mapping, char ret_path[static PATH_MAX])
{
	char link[64];
	ssize_t len;
	int fd, by_path;

	link_of(mapping, link);
	fd = open_regular(mapping->process, link);
	len = fd >= 0 ? readlinkat(mapping->process, link, ret_path, PATH_MAX - 1) : -1;
	if (len > 0) {
		ret_path[len] = '\0';
		bid_path_strip_deleted(ret_path);
		return fd;
	}
	bid_close(fd);
	by_path = path_of(mapping, ret_path);
	if (by_path == 0)
		by_path = open_by_path(mapping, ret_path);
	if (by_path >= 0 || by_path == -ENAMETOOLONG)
		return by_path;
	fd = open_program(mapping);
	return fd >= 0 ? fd : by_path;
}

int ctl_process_root(const char *pid)
{
	char path[64];
	int fd;

	if (!*pid || strlen(pid) > 10 || strspn(pid, "0123456789") != strlen(pid))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%s/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool ctl_mapping_is_archive(int fd)
{
	char magic[4];

	/* a local file header: APPNOTE.TXT, 4.3.7 */
	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && memcmp(magic, "PK\3\4", sizeof(magic)) == 0;
}
