/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* System calls that the daemon never makes are refused to it: seccomp(2). What is refused fails with EPERM, and ends nothing. */
#ifndef BID_FS_SYSCALLS_H
#define BID_FS_SYSCALLS_H

#include <stdbool.h>

/* Why none can be refused; NULL if they can. Static. */
const char *bid_syscalls_obstacle(void);

/*
 * Refuse them to the calling thread, and to those that it will start; sockets of the internet, too, without @network. Needs
 * no_new_privs. 0 or a negative errno.
 */
int bid_syscalls_refuse(bool network);

#endif
