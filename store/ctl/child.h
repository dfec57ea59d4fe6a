/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What may never return: a file system whose server is silent holds a process in the kernel, where no signal ends it. */
#ifndef BID_CTL_CHILD_H
#define BID_CTL_CHILD_H

/*
 * Run @body in a child process, and wait at most @timeout_ms for it; it ends with this process at the latest, as soon as the kernel
 * lets it. Memory that is shared has what it wrote there. For a process with one thread. Returns what @body returned, 0 or a
 * negative errno, or
 *   -ETIMEDOUT	it did not end; it is killed and left behind
 *   -EINTR	@interrupt, a descriptor or -1, can be read; likewise
 *   -EIO	a signal ended it
 *   other	as fork(2), pidfd_open(2) and poll(2)
 */
int ctl_child_run(int (*body)(void *user), void *user, int timeout_ms, int interrupt);

#endif
