/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An artifact for a request of the kernel: from the store at once, or from the broker after a download. */
#ifndef BID_FS_FIND_OR_FETCH_H
#define BID_FS_FIND_OR_FETCH_H

#include "fuse/ops.h"

/* An artifact that a request of the kernel wants. */
struct bid_wanted {
	struct bid_artifact artifact;
	struct bid_inode inode; /* GETATTR, OPEN, READ: of the artifact; the kernel holds it until the answer */
	struct fuse_file_info fi; /* OPEN */
	bool is_read; /* READ in no_open mode */
	size_t size; /* READ */
	off_t offset; /* READ */
};

/*
 * Answer @req. @error is 0 or the broker's. With 0, @file is the artifact, whose descriptor the function may take; the caller
 * releases the rest.
 */
typedef void (*bid_finish_fn)(fuse_req_t req, struct bid_wanted *wanted, int error, struct bid_file *file);

/*
 * Find the artifact of @wanted, and call @finish with it or, later, with a copy. The call comes from this function if the store has
 * the artifact or the artifact is known to be absent, else from a thread of the broker at the end of the download or of the bounded
 * wait. No thread waits meanwhile. The answer to an interrupted request is EINTR, at once.
 */
void bid_find_or_fetch(fuse_req_t req, struct bid_wanted *wanted, bid_finish_fn finish);

#endif
