// SPDX-License-Identifier: LGPL-2.1-or-later
/* For libfuse before 3.17. */
#include "fuse/greeting.h"

#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"

static ssize_t read_request(int fd, void *buffer, size_t size, void *userdata)
{
	return read(fd, buffer, size);
}

/* The first answer of a session is the one to FUSE_INIT: the kernel sends nothing else before it. */
static ssize_t write_answer(int fd, struct iovec *iov, int count, void *userdata)
{
	static atomic_flag greeted = ATOMIC_FLAG_INIT;
	const struct fuse_out_header *header = iov[0].iov_base;

	if (!atomic_flag_test_and_set(&greeted) && count == 2 && header->error == 0 &&
	    iov[1].iov_len >= offsetof(struct fuse_init_out, flags) + sizeof(uint32_t))
		((struct fuse_init_out *)iov[1].iov_base)->flags |= FUSE_PARALLEL_DIROPS;
	return writev(fd, iov, count);
}

void bid_greeting_mend(struct fuse_session *session)
{
	static const struct fuse_custom_io io = { .read = read_request, .writev = write_answer };
	int r = fuse_session_custom_io(session, &io, fuse_session_fd(session));

	if (r < 0)
		bid_warning("lookups in one directory wait for one another: libfuse does not let its answers be mended");
}
