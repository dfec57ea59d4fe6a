// SPDX-License-Identifier: LGPL-2.1-or-later
/* The protocol of sd_notify(3) is one datagram: no reason for a library. */
#include "base/sd_notify.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/log.h"

int bid_notify_open(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *name = getenv("NOTIFY_SOCKET");
	size_t len = name ? strlen(name) : 0;
	bid_auto_fd int fd = -1;

	if (len == 0)
		return -1;
	if ((name[0] != '/' && name[0] != '@') || len >= sizeof(address.sun_path)) {
		bid_warning("NOTIFY_SOCKET '%s' is not the name of a socket", name);
		return -1;
	}
	memcpy(address.sun_path, name, len);
	/* the name of an abstract socket begins with a zero */
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    connect(fd, (const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0) {
		bid_warning("%s: cannot reach the service manager at '%s'", strerror(errno), name);
		return -1;
	}
	return bid_steal_fd(&fd);
}

void bid_notify(int fd, const char *state)
{
	if (fd >= 0 && write(fd, state, strlen(state)) < 0)
		bid_warning("%s: cannot send '%s' to the service manager", strerror(errno), state);
}
