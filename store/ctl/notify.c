// SPDX-License-Identifier: LGPL-2.1-or-later
/* The protocol of sd_notify(3), which is one datagram; a library for it would be one more to have. */
#include "ctl/notify.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/log.h"

void ctl_notify(const char *state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *name = getenv("NOTIFY_SOCKET");
	size_t len = name ? strlen(name) : 0;
	bid_auto_fd int fd = -1;

	if (len == 0)
		return;
	if ((name[0] != '/' && name[0] != '@') || len >= sizeof(address.sun_path)) {
		bid_warning("not the name of a socket in the environment: NOTIFY_SOCKET '%s'", name);
		return;
	}
	memcpy(address.sun_path, name, len);
	/* an abstract one has a zero there */
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		bid_warning("%s: telling the service manager '%s'", strerror(errno), state);
}
