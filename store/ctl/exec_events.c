// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/exec_events.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdbool.h>
#include <string.h>
#include <sys/fanotify.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/mounts.h"

void ctl_exec_events_mark(const struct ctl_exec_events *events)
{
	FILE *table = setmntent("/proc/self/mounts", "re");
	struct mntent entry;
	char text[8192];

	while (table && getmntent_r(table, &entry, text, sizeof(text))) {
		/* on other file systems the kernel's open of the file for this process would wait for a server */
		if (!ctl_type_is_local(entry.mnt_type))
			continue;
		/* file systems without programs, or below another mount, give no events */
		if (fanotify_mark(events->fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_EXEC, AT_FDCWD, entry.mnt_dir) < 0)
			bid_debug("%s: watching '%s'", strerror(errno), entry.mnt_dir);
	}
	if (table)
		endmntent(table);
}

int ctl_exec_events_open(struct ctl_exec_events *ret_events)
{
	struct ctl_exec_events events = CTL_EXEC_EVENTS_NONE;
	int r = 0;

	events.fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
	/* a mark on / shows whether the kernel knows these events */
	if (events.fd < 0 || fanotify_mark(events.fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_EXEC, AT_FDCWD, "/") < 0)
		r = -errno;
	if (r == 0)
		events.mounts = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	if (r == 0 && events.mounts < 0)
		r = -errno;
	if (r < 0) {
		ctl_exec_events_release(&events);
		return r;
	}
	ctl_exec_events_mark(&events);
	*ret_events = events;
	return 0;
}

int ctl_exec_events_read(const struct ctl_exec_events *events, int (*fn)(void *user, pid_t pid, int fd), void *user)
{
	_Alignas(struct fanotify_event_metadata) char buffer[2048];
	const struct fanotify_event_metadata *event = (const void *)buffer;
	ssize_t len = read(events->fd, buffer, sizeof(buffer));
	bool lost = false;
	int r = 0;

	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	/* always to the end, because each event has a descriptor */
	for (; FAN_EVENT_OK(event, len); event = FAN_EVENT_NEXT(event, len)) {
		lost |= (event->mask & FAN_Q_OVERFLOW) != 0;
		if (r == 0 && event->fd >= 0)
			r = fn(user, event->pid, event->fd);
		bid_close(event->fd);
	}
	return r == 0 && lost ? -EOVERFLOW : r;
}

void ctl_exec_events_release(struct ctl_exec_events *events)
{
	bid_close(events->fd);
	bid_close(events->mounts);
	*events = CTL_EXEC_EVENTS_NONE;
}
