// SPDX-License-Identifier: LGPL-2.1-or-later
/* The twin of backing.c for libfuse before 3.17. */
#include "backing.h"

#include <errno.h>

bool bid_backing_compiled(void)
{
	return false;
}

bool bid_backing_negotiate(struct fuse_conn_info *conn, unsigned stack_depth)
{
	return false;
}

int bid_backing_open(fuse_req_t req, struct bid_inode *inode, int fd, struct fuse_file_info *fi)
{
	return -EOPNOTSUPP;
}

void bid_backing_close(struct bid_fs *fs, struct bid_inode *inode, bool by_kernel)
{
}

void bid_backing_detach(void *attachment)
{
}
