// SPDX-License-Identifier: LGPL-2.1-or-later
/* For libfuse before 3.17. */
#include "channel.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <sys/uio.h>

int bid_channel_use(struct fuse_session *session, const struct fuse_custom_io *io)
{
	return fuse_session_custom_io(session, io, fuse_session_fd(session)) < 0 ? -EINVAL : 0;
}

void bid_channel_greet(struct iovec *iov, int count)
{
	const struct fuse_out_header *header = iov[0].iov_base;

	if (count == 2 && header->error == 0 && iov[1].iov_len >= offsetof(struct fuse_init_out, flags) + sizeof(uint32_t))
		((struct fuse_init_out *)iov[1].iov_base)->flags |= FUSE_PARALLEL_DIROPS;
}
