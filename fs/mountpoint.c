// SPDX-License-Identifier: LGPL-2.1-or-later
#include "mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

enum { SHORTEST = 5 }; /* perf writes 5 bytes before the end of its buildid.dir (perf, util/build-id.c) */

int bid_mountpoint_default(char ret_path[static PATH_MAX])
{
	static const char usual[] = "/run/bidfs";
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	/* fusermount3(1) needs a directory that the user may write */
	if (stat(usual, &st) == 0 && S_ISDIR(st.st_mode) && (geteuid() == 0 || access(usual, W_OK) == 0)) {
		memcpy(ret_path, usual, sizeof(usual));
		return 0;
	}
	if (!runtime || runtime[0] != '/' || stat(runtime, &st) < 0)
		return -ENOENT;
	if (snprintf(ret_path, PATH_MAX, "%s/bid", runtime) >= PATH_MAX)
		return -ENAMETOOLONG;
	return mkdir(ret_path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Is @path a mount point? @ret_type gets the type of the top mount, the last one in the table. */
static bool is_mounted(const char *path, char *ret_type, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *entry;
	bool found = false;

	while (mounts && (entry = getmntent(mounts)))
		if (strcmp(entry->mnt_dir, path) == 0) {
			found = true;
			snprintf(ret_type, size, "%s", entry->mnt_type);
		}
	if (mounts)
		endmntent(mounts);
	return found;
}

static bool is_empty(const char *path)
{
	bid_auto_dir DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return false;
	return true;
}

/* Is @inner @outer, or below it? */
static bool is_within(const char *inner, const char *outer)
{
	size_t len = strlen(outer);

	return strncmp(inner, outer, len) == 0 && (inner[len] == '\0' || inner[len] == '/' || outer[len - 1] == '/');
}

int bid_mountpoint_check(const char *path, const char *store, bool nonempty, char ret_path[static PATH_MAX])
{
	char real[PATH_MAX], type[64] = "";
	struct statvfs statvfs_path;
	struct stat st;
	bool in_place;

	/* the kernel may have cached the attributes of a dead mount, but not these */
	if (stat(path, &st) < 0 || (statvfs(path, &statvfs_path) < 0 && errno == ENOTCONN)) {
		if (errno == ENOTCONN)
			bid_error("a file system whose daemon died is still mounted on '%s' - remove it with 'umount -l %s' or "
				  "'fusermount3 -uz %s'",
				  path, path, path);
		else if (errno == ENOENT)
			bid_error("no such mount point '%s' - create it with 'mkdir -p %s', or name another", path, path);
		else
			bid_error("%s: cannot mount on '%s' - name another mount point", strerror(errno), path);
		return -1;
	}
	if (!S_ISDIR(st.st_mode)) {
		bid_error("not a directory: '%s' - name an empty directory as the mount point", path);
		return -1;
	}
	if (!realpath(path, real)) {
		bid_error("%s: cannot mount on '%s' - name another mount point", strerror(errno), path);
		return -1;
	}
	if (strlen(real) < SHORTEST) {
		bid_error("mount point too short: '%s': perf corrupts its memory with a build-id directory of less than 5 "
			  "characters - name a longer one",
			  real);
		return -1;
	}
	if (is_mounted(real, type, sizeof(type))) {
		bid_error("already mounted: there is a file system of type '%s' on '%s' - unmount it with 'umount %s', or name "
			  "another mount point",
			  type, real, real);
		return -1;
	}
	/* over the store itself, perf reads and writes through the mount */
	in_place = strcmp(store, real) == 0;
	if (!in_place && (is_within(store, real) || is_within(real, store))) {
		bid_error("store and mount point overlap: '%s' and '%s' - mount outside the store, or on it", store, real);
		return -1;
	}
	if (!nonempty && !in_place && !is_empty(real)) {
		bid_error("not empty: '%s': a mount would hide its files - name an empty directory, or add '-o nonempty'", real);
		return -1;
	}
	memcpy(ret_path, real, sizeof(real));
	return 0;
}

int bid_mountpoint_device(void)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == ENOENT)
		bid_error(
			"no '/dev/fuse' - load the kernel's module with 'modprobe fuse'; for a container, start it with '--device "
			"/dev/fuse'");
	else if (errno == EACCES || errno == EPERM)
		bid_error("no access to '/dev/fuse' - let the administrator 'chmod 666 /dev/fuse'; for a container, start it with "
			  "'--device /dev/fuse'");
	else
		bid_error("%s: cannot open '/dev/fuse' - load the kernel's module with 'modprobe fuse'", strerror(errno));
	return -1;
}
