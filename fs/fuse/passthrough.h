/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Passthrough: the kernel reads an open file from the store itself (Documentation/filesystems/fuse-passthrough.rst).
 *
 *	bid_passthrough_obstacle(), bid_passthrough_stacked()	before the mount
 *	bid_passthrough_negotiate()	INIT
 *	bid_passthrough_make_id()	the first OPEN of an inode; vfs/fd_cache.h keeps the id
 *	bid_passthrough_set()		each OPEN
 *	bid_passthrough_drop_id()
 */
#ifndef BID_FS_PASSTHROUGH_H
#define BID_FS_PASSTHROUGH_H

#include "fs.h"

struct fuse_conn_info;
struct fuse_file_info;

/* The reason against passthrough, whatever the kernel offers; NULL if there is none. Static. */
const char *bid_passthrough_obstacle(void);

/*
 * Does @store or a lower store lie on a file system that may be stacked on another: an overlay, or a mount with passthrough? Call
 * before mounting, because the mount may cover the store.
 */
bool bid_passthrough_stacked(const struct bid_store *store, const struct bid_options *options);

/*
 * Request passthrough of the kernel, with @stacked also for files of stacked file systems. False if the kernel does not offer
 * it.
 */
bool bid_passthrough_negotiate(struct fuse_conn_info *conn, bool stacked);

/*
 * Register the file @fd for the mount @fs, a struct bid_fs. Returns a backing id, -EOPNOTSUPP in other modes, or the errno of
 * the kernel: -ELOOP for too many stacked file systems. Counts the refusals of the kernel, and logs the first of each errno.
 */
int bid_passthrough_make_id(void *fs, int fd);

/* After the session the kernel has dropped all ids. */
void bid_passthrough_drop_id(void *fs, int id);

/* Answer an OPEN with the backing id @id. */
void bid_passthrough_set(struct fuse_file_info *fi, int id);

#endif
