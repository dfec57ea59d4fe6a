/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Landlock (landlock(7)): a process gives up, for good, the files and ports that no rule of its ruleset allows. Raw system
 * calls, because the C library has no functions; own constants, because the headers of Debian 12 are of Linux 6.1.
 *
 *	bid_landlock_new(), bid_landlock_allow()..., prctl(PR_SET_NO_NEW_PRIVS), bid_landlock_enter()
 */
#ifndef BID_FS_LANDLOCK_H
#define BID_FS_LANDLOCK_H

#include <stdbool.h>

/* Access to a file, or to all files below a directory. */
enum bid_landlock_access {
	BID_LANDLOCK_READ = 1 << 0, /* files and directories */
	BID_LANDLOCK_WRITE = 1 << 1, /* existing files */
	BID_LANDLOCK_CHANGE = 1 << 2, /* make, link, rename and remove files, directories and symbolic links */
	BID_LANDLOCK_EXECUTE = 1 << 3,
};

/* The version in this kernel: 1 (Linux 5.13) and up; -EOPNOTSUPP if it is switched off, -ENOSYS if there is none. */
int bid_landlock_version(void);

/*
 * Make a ruleset that allows no files, no TCP ports to listen on or, without @connect, to connect to, no signals to other
 * processes, and no abstract sockets of theirs, as far as the kernel supports that. The caller closes @ret_ruleset. -EOPNOTSUPP
 * before version 2, which forbids all links between directories.
 */
int bid_landlock_new(int version, bool connect, int *ret_ruleset);

/*
 * Allow @access, a set of bid_landlock_access, to the file or directory at @fd, perhaps an O_PATH descriptor. A later mount on
 * it is not covered.
 */
int bid_landlock_allow(int ruleset, int fd, unsigned access);

/* Restrict the calling thread, and threads that it starts later, to @ruleset. Needs no_new_privs. */
int bid_landlock_enter(int ruleset);

#endif
