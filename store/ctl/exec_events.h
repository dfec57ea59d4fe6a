/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs as they are started, on every local file system: fanotify(7), FAN_OPEN_EXEC. */
#ifndef BID_CTL_EXEC_EVENTS_H
#define BID_CTL_EXEC_EVENTS_H

#include <sys/types.h>

struct ctl_exec_events {
	int fd; /* readable when there are some; owned */
	int mounts; /* has an exceptional condition (POLLPRI) when something was mounted or unmounted; owned */
};

#define CTL_EXEC_EVENTS_NONE ((struct ctl_exec_events){ .fd = -1, .mounts = -1 })

/* Returns 0, -EPERM without CAP_SYS_ADMIN, or -ENOSYS or -EINVAL from a kernel before 5.0 or without fanotify. */
int ctl_exec_events_open(struct ctl_exec_events *ret_events);

/* Mark what was mounted since. Network file systems and those of a daemon are left out: to ask them may take for ever. */
void ctl_exec_events_mark(const struct ctl_exec_events *events);

/*
 * Call @fn for a number of those that came. @fd is the program's file, open for reading, and is closed after the call; @pid has
 * executed it, and may have ended. A non-zero return ends it and is returned. Returns 0 otherwise, or -EOVERFLOW if some were lost.
 */
int ctl_exec_events_read(const struct ctl_exec_events *events, int (*fn)(void *user, pid_t pid, int fd), void *user);

void ctl_exec_events_release(struct ctl_exec_events *events);

#endif
