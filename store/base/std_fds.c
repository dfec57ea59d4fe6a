// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/std_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int bid_std_fds_occupy(void)
{
	/* in this order, because open(2) takes the lowest number; what is opened is always there, and cannot be read or written */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/", O_PATH) < 0)
			return -errno;
	return 0;
}
