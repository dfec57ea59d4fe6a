/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a process has mapped as code: proc(5), "/proc/pid/maps", and the files behind it. */
#ifndef BID_CTL_MAPS_H
#define BID_CTL_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct ctl_mapping {
	int process; /* the directory in /proc that it was read from, of a process or of one of its threads; borrowed */
	unsigned long long start, end;
	dev_t dev; /* some file systems have another one in stat(2) */
	ino_t ino;
	const char *path; /* as the kernel writes it: below the root of the process, perhaps marked as deleted */
};

/*
 * Call @fn for each file that the process @pid, decimal, has mapped as code, each mapping of it; also if its first thread has ended
 * and others run. A non-zero return ends it and is returned. Returns 0 otherwise, for a process that has ended too, -ENOENT if
 * there is none, or -EACCES if it may not be looked into.
 */
int ctl_maps_each(const char *pid, int (*fn)(void *user, const struct ctl_mapping *mapping), void *user);

/* stat(2) of what is mapped. Returns 0 or a negative errno: as of ctl_mapping_open(). */
int ctl_mapping_stat(const struct ctl_mapping *mapping, struct stat *ret_stat);

/*
 * Open what is mapped: from the mapping where that is allowed, because a name is only where the file was once; the mapping is the
 * file, deleted, replaced or in another mount namespace. @ret_path is its path inside the mount namespace of the process. Returns a
 * descriptor, or a negative errno:
 *   -ESTALE, -ENOENT	only the mapping leads to the file any more, and that may not be followed
 *   -ESRCH, -EINVAL	the process has ended, or what is mapped is a device
 */
int ctl_mapping_open(const struct ctl_mapping *mapping, char ret_path[static PATH_MAX]);

/* The root directory of the process @pid, decimal. Returns a descriptor, -EINVAL for what is no number, or as open(2). */
int ctl_process_root(const char *pid);

/*
 * Is the file open at @fd, which is no ELF file and mapped as code, an archive (zip, as an APK is) with the program or library in
 * it?
 */
bool ctl_mapping_is_archive(int fd);

#endif
