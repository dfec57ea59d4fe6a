/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests that wait for a download. No thread does: the request lies in the broker's list, and can be interrupted there. */
#ifndef BID_FS_WAIT_H
#define BID_FS_WAIT_H

#include "fs.h"

/* What the kernel asked for, to be answered later. */
struct bid_call {
	struct bid_request artifact;
	bool in_place; /* for lookup: no link leads to the file, only its directory */
	struct bid_inode inode; /* for open and read: the artifact's; held by the kernel until it is answered */
	struct fuse_file_info fi; /* for open */
	size_t size; /* for read */
	off_t offset; /* for read */
};

/*
 * Answers @req with what became of the wait: @error is 0 or the broker's; with 0, @file is the artifact, and is released
 * afterwards unless its fd was taken.
 */
typedef void (*bid_wait_fn)(fuse_req_t req, struct bid_call *call, int error, struct bid_file *file);

/*
 * Get the artifact of @call, which is copied, and call @answer with it: at once and from here if it is in the store or known to
 * be absent, else when it was fetched or the bounded wait is over. An interrupted request is answered with EINTR at once.
 */
void bid_wait(fuse_req_t req, const struct bid_call *call, bid_wait_fn answer);

#endif
