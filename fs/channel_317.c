// SPDX-License-Identifier: LGPL-2.1-or-later
/* libfuse 3.17 and later. */
#include "channel.h"

#include <errno.h>

int bid_channel_use(struct fuse_session *session, const struct fuse_custom_io *io)
{
	return fuse_session_custom_io(session, io, sizeof(*io), fuse_session_fd(session)) < 0 ? -EINVAL : 0;
}

/* It says what it was told. */
void bid_channel_greet(struct iovec *iov, int count)
{
}
