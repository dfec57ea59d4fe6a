/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Program starts on every local file system: fanotify(7), FAN_OPEN_EXEC. */
#ifndef BID_CTL_EXEC_EVENTS_H
#define BID_CTL_EXEC_EVENTS_H

#include <sys/types.h>

struct ctl_exec_events {
	int fd; /* readable with events in its queue; owned */
	int mounts; /* has an exceptional condition (POLLPRI) after a mount or unmount; owned */
};

#define CTL_EXEC_EVENTS_NONE ((struct ctl_exec_events){ .fd = -1, .mounts = -1 })

/*
 * Open the event queue. Returns 0, -EPERM without CAP_SYS_ADMIN, or -ENOSYS or -EINVAL from a kernel before 5.0 or without
 * fanotify.
 */
int ctl_exec_events_open(struct ctl_exec_events *ret_events);

/* Mark new mounts. Network and FUSE file systems stay without a mark, because calls into them may block for ever. */
void ctl_exec_events_mark(const struct ctl_exec_events *events);

/*
 * Call @fn for a number of the queued events. @fd is the program's file, open for reading, and is closed after the call. Process
 * @pid executed the file, and may have ended. A non-zero return ends the loop and is returned. Returns 0 otherwise, or -EOVERFLOW
 * after a loss of events.
 */
int ctl_exec_events_read(const struct ctl_exec_events *events, int (*fn)(void *user, pid_t pid, int fd), void *user);

void ctl_exec_events_release(struct ctl_exec_events *events);

#endif
