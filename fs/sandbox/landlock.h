/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Landlock (landlock(7)): a process gives up, for good, to reach files and ports that no rule of a ruleset allows. By raw system
 * calls, because the C library has none, and with numbers of our own, because the headers of Debian 12 end with Linux 6.1.
 */
#ifndef BID_FS_LANDLOCK_H
#define BID_FS_LANDLOCK_H

#include <stdbool.h>

/* What a rule allows below its directory, or of its file. */
enum bid_landlock_access {
	BID_LANDLOCK_READ = 1 << 0, /* files and directories */
	BID_LANDLOCK_WRITE = 1 << 1, /* what is there */
	BID_LANDLOCK_CHANGE = 1 << 2, /* to make, link, rename and remove files, directories and symbolic links */
	BID_LANDLOCK_EXECUTE = 1 << 3,
};

/* Its version in this kernel: 1 (Linux 5.13) and up; -EOPNOTSUPP if it is switched off, -ENOSYS if there is none. */
int bid_landlock_version(void);

/*
 * A ruleset that allows nothing yet: neither to reach files, nor to listen on TCP ports, nor, unless @connect, to connect to one,
 * nor to signal others or connect to their abstract sockets; as far as the kernel has it. The caller closes @ret_ruleset.
 * -EOPNOTSUPP before version 2, which is the first that lets a file be linked into another directory at all.
 */
int bid_landlock_new(int version, bool connect, int *ret_ruleset);

/* Allow @access, a set of those, to what is open at @fd, as O_PATH if need be. What is mounted on it later is another thing. */
int bid_landlock_allow(int ruleset, int fd, unsigned access);

/* The calling thread, and those that it will start, have no more than @ruleset from now on. Needs no_new_privs. */
int bid_landlock_enter(int ruleset);

#endif
