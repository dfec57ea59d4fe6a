/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* System calls that the daemon does not need fail with ENOSYS: seccomp(2). */
#ifndef BID_FS_SYSCALLS_H
#define BID_FS_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A user and a group that files may be given to. */
struct bid_owner {
	uid_t uid;
	gid_t gid;
};

/* What is allowed beyond the calls that each daemon needs. */
struct bid_syscalls_allowed {
	bool network; /* calls of the internet */
	bool any_owner; /* the kernel does not let this user give files away */
	const struct bid_owner *owners; /* else these alone are given files; borrowed */
	size_t n_owners;
	mode_t shared; /* of S_IWGRP and S_IWOTH those that a file may get */
};

/* Why none can be refused; NULL if they can. Static. */
const char *bid_syscalls_obstacle(void);

/*
 * Leave the calling thread, and those that it will start, the calls that the daemon needs. Needs no_new_privs. 0 or a negative
 * errno.
 */
int bid_syscalls_restrict(const struct bid_syscalls_allowed *allowed);

#endif
