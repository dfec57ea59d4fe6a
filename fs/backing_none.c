// SPDX-License-Identifier: LGPL-2.1-or-later
/* The twin of backing.c for libfuse before 3.17. */
#include "backing.h"

#include <errno.h>
#include <stddef.h>

bool bid_backing_compiled(void)
{
	return false;
}

bool bid_backing_negotiate(struct fuse_conn_info *conn, bool stacked)
{
	return false;
}

int bid_backings_new(unsigned max_kept, struct bid_backings **ret_backings)
{
	*ret_backings = NULL;
	return 0;
}

void bid_backings_end(struct bid_backings *backings)
{
}

void bid_backings_free(struct bid_backings *backings)
{
}

void bid_backings_let_go(struct bid_backings *backings, const struct stat *st)
{
}

int bid_backing_open(fuse_req_t req, fuse_ino_t number, int fd, const struct stat *st, struct fuse_file_info *fi,
		     struct bid_backing **ret_backing)
{
	*ret_backing = NULL;
	return -EOPNOTSUPP;
}

bool bid_backing_stat(struct bid_fs *fs, uint64_t number, struct stat *ret_st)
{
	return false;
}

uint64_t bid_backings_refused(struct bid_backings *backings, int *ret_error)
{
	*ret_error = 0;
	return 0;
}

void bid_backing_close(struct bid_backing *backing, bool by_kernel)
{
}

void bid_backing_detach(void *attachment)
{
}
