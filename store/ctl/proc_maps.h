/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Code mappings of a process: proc(5), "/proc/pid/maps", and the files behind them. */
#ifndef BID_CTL_PROC_MAPS_H
#define BID_CTL_PROC_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct ctl_mapping {
	int process; /* source directory in /proc, of a process or of one of its threads; borrowed */
	unsigned long long start, end;
	dev_t dev; /* differs from stat(2) on some file systems */
	ino_t ino;
	const char *path; /* as the kernel writes it: below the root of the process, perhaps marked as deleted */
};

/*
 * Call @fn for each mapping of a file as code in the process @pid, decimal, also after the end of its first thread. A non-zero
 * return ends the loop and is returned. Returns 0 otherwise, also for a process that has ended; -ENOENT without a process; or
 * -EACCES without the permission to inspect it.
 */
int ctl_maps_each(const char *pid, int (*fn)(void *user, const struct ctl_mapping *mapping), void *user);

/* stat(2) the mapped file. Returns 0, or a negative errno as of ctl_mapping_open(). */
int ctl_mapping_stat(const struct ctl_mapping *mapping, struct stat *ret_stat);

/*
 * Open the mapped file. @ret_path is its path inside the mount namespace of the process.
 * The mapping is the file itself, also after the file was deleted or replaced, and in another mount namespace; a name is only the
 * file's former place. Therefore the mapping comes first where the kernel permits it. Returns a descriptor, or a negative errno:
 *   -ESTALE, -ENOENT	only the mapping still leads to the file, and the kernel denies it
 *   -ESRCH, -EINVAL	the process has ended, or a device is mapped
 */
int ctl_mapping_open(const struct ctl_mapping *mapping, char ret_path[static PATH_MAX]);

/* Open the root directory of the process @pid, decimal. Returns a descriptor, -EINVAL for a non-number, or as open(2). */
int ctl_process_root(const char *pid);

/*
 * Is the file open at @fd an archive (zip, such as an APK) that contains the program or library? The file is mapped as code, and no
 * ELF file.
 */
bool ctl_mapping_is_archive(int fd);

#endif
