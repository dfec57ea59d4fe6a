/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seccomp(2): system calls that the daemon does not need fail with ENOSYS.
 *
 *	bid_syscalls_obstacle(), prctl(PR_SET_NO_NEW_PRIVS), bid_syscalls_restrict()
 */
#ifndef BID_FS_SYSCALLS_H
#define BID_FS_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A new owner for files. */
struct bid_owner {
	uid_t uid;
	gid_t gid;
};

/* Permissions beyond the calls of each daemon. */
struct bid_syscalls_allowed {
	bool network; /* sockets of the internet */
	bool any_owner; /* the user has no CAP_CHOWN */
	const struct bid_owner *owners; /* the only new owners; borrowed */
	size_t n_owners;
	mode_t shared; /* bits S_IWGRP and S_IWOTH that a file may get */
};

/* The reason against a filter; NULL if there is none. Static. */
const char *bid_syscalls_obstacle(void);

/* Restrict the calling thread, and threads that it starts later. Needs no_new_privs. 0 or a negative errno. */
int bid_syscalls_restrict(const struct bid_syscalls_allowed *allowed);

#endif
