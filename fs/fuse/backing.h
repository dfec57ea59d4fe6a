/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Passthrough: the kernel reads an opened file from the store itself. While any handle of an inode is open, all of them must be
 * read the same way, and if by the kernel, then by the same backing id (Documentation/filesystems/fuse-passthrough.rst); anything
 * else is EIO.
 */
#ifndef BID_FS_BACKING_H
#define BID_FS_BACKING_H

#include "fs.h"

/*
 * The backing ids of a mount. At most @max_kept are kept while nobody has their file open, for the next open: to register one costs
 * a call to the kernel, to give it back another.
 */
struct bid_backings;

/* What the handles of one inode have in common. */
struct bid_backing;

int bid_backings_new(unsigned max_kept, struct bid_backings **ret_backings);

/* The session is over, and the kernel has given up all ids. */
void bid_backings_end(struct bid_backings *backings);

/* After the inodes were freed. @backings may be NULL. */
void bid_backings_free(struct bid_backings *backings);

/*
 * Give back the id of the file with the attributes @st if nobody has that open, or with NULL the ids that were not used for a
 * minute. @backings may be NULL.
 */
void bid_backings_drop(struct bid_backings *backings, const struct stat *st);

/* Is it compiled in? libfuse has it from 3.17 on. */
bool bid_backing_compiled(void);

/* Does the kernel at the other end of @conn offer it? If so, ask for it, for files of stacked file systems too if @stacked. */
bool bid_backing_negotiate(struct fuse_conn_info *conn, bool stacked);

/*
 * Open the inode @number, whose checked file is @fd with the attributes @st, into @fi. Returns
 *   0			the kernel reads it from now on, for which @fd is not needed any more
 *   -EOPNOTSUPP	it is for the caller to read
 *   -ESTALE		another file is open as this inode, and the name is to be looked up again
 *   -ENOMEM
 * After the first two it counts as open until bid_backing_close() of @ret_backing, which is NULL if that is not needed.
 */
int bid_backing_open(fuse_req_t req, fuse_ino_t number, int fd, const struct stat *st, struct fuse_file_info *fi,
		     struct bid_backing **ret_backing);

/*
 * The attributes that the file of the inode @number, an artifact's, had when it was opened, if there are handles of it: wherever
 * it is by now. False if there are none.
 */
bool bid_backing_stat(struct bid_fs *fs, uint64_t number, struct stat *ret_st);

/*
 * How many files the kernel did not take, which are for us to read. @ret_error is what it said of the last: -ELOOP of one that lies
 * on more file systems than it follows; or 0. @backings may be NULL.
 */
uint64_t bid_backings_refused(struct bid_backings *backings, int *ret_error);

/* One of its handles is gone: one that the kernel read if @by_kernel. Its inode may be gone before it. */
void bid_backing_close(struct bid_backing *backing, bool by_kernel);

/* An inode with such an attachment goes. */
void bid_backing_detach(void *attachment);

#endif
