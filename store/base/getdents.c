// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/getdents.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

void bid_dents_init(struct bid_dents *dents, int fd)
{
	dents->fd = fd;
	dents->len = dents->at = 0;
}

struct bid_dent *bid_dents_next(struct bid_dents *dents)
{
	struct bid_dent *dent;

	if (dents->at >= dents->len) {
		dents->at = 0;
		dents->len = syscall(SYS_getdents64, dents->fd, dents->buffer, sizeof(dents->buffer));
		if (dents->len <= 0) {
			/* a directory that was removed has no entries */
			if (dents->len == 0 || errno == ENOENT)
				errno = 0;
			dents->len = 0;
			return NULL;
		}
	}
	dent = (void *)(dents->buffer + dents->at);
	dents->at += dent->len;
	return dent;
}
