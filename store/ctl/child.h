/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Child processes: other programs, and calls that may never return. A silent file system holds its process in the kernel, where no
 * signal ends the process.
 */
#ifndef BID_CTL_CHILD_H
#define BID_CTL_CHILD_H

#include <signal.h>

/*
 * Run @body in a child process, and wait for its end for at most @timeout_ms. The caller has one thread.
 * The child dies with this process, as soon as the kernel lets it. Shared memory keeps the child's writes.
 * Returns the return value of @body (0 or a negative errno), or
 *   -ETIMEDOUT	the child did not end; it is killed and left behind
 *   -EINTR	@interrupt, a descriptor or -1, became readable; the child is killed and left behind
 *   -EIO	a signal ended the child
 *   other	as fork(2), pidfd_open(2) and poll(2)
 */
int ctl_child_run(int (*body)(void *user), void *user, int timeout_ms, int interrupt);

/*
 * Run the program @argv[0] of PATH with its standard output in @output, and wait for its end. Returns its exit status, or a
 * negative errno as posix_spawnp(3).
 */
int ctl_child_exec(const char *const *argv, int output);

/*
 * Fill @ret_signals with SIGINT, SIGTERM and SIGHUP, except ignored ones (nohup(1)): a blocked signal arrives even if it is
 * ignored.
 */
void ctl_end_signals(sigset_t *ret_signals);

#endif
