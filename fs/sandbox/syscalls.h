/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* System calls that the daemon does not need fail with ENOSYS: seccomp(2). */
#ifndef BID_FS_SYSCALLS_H
#define BID_FS_SYSCALLS_H

#include <stdbool.h>

/* Why none can be refused; NULL if they can. Static. */
const char *bid_syscalls_obstacle(void);

/*
 * Leave the calling thread, and those that it will start, the calls that the daemon needs; those of the internet with @network
 * alone. Needs no_new_privs. 0 or a negative errno.
 */
int bid_syscalls_restrict(bool network);

#endif
