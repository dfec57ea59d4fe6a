// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

const char *ctl_tracefs(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/trace", places[i]);
		if (access(path, F_OK) == 0)
			return places[i];
	}
	return NULL;
}

const char *ctl_tracefs_list(bool kernel)
{
	return kernel ? "kprobe_events" : "uprobe_events";
}

int ctl_tracefs_write(bool kernel, const char *line)
{
	const char *top = ctl_tracefs();
	bid_auto_fd int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", top ? top : "", ctl_tracefs_list(kernel));
	/* appending: to truncate the list is to remove all events of everybody */
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}
