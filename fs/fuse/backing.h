/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Passthrough: the kernel reads an open file from the store itself. All open handles of an inode are read the same way, and by
 * the kernel only with one backing id, or the kernel answers EIO (Documentation/filesystems/fuse-passthrough.rst).
 *
 *	bid_backing_open()	OPEN
 *	bid_backing_close()	RELEASE
 *	bid_backing_detach()	the inode goes, before or after its last handle
 */
#ifndef BID_FS_BACKING_H
#define BID_FS_BACKING_H

#include "fs.h"

/*
 * The backing ids of a mount. Ids without a handle stay registered for the next open, @max_kept at most: each registration is a
 * system call.
 */
struct bid_backings;

/* The state that all handles of an inode share. */
struct bid_backing;

int bid_backings_new(unsigned max_kept, struct bid_backings **ret_backings);

/* Forget all ids: the kernel drops them with the session. */
void bid_backings_end(struct bid_backings *backings);

/* Call after bid_inodes_free(). @backings may be NULL. */
void bid_backings_free(struct bid_backings *backings);

/*
 * Unregister the id of the file with the attributes @st if no handle is open. NULL: all ids without a handle for a minute.
 * @backings may be NULL.
 */
void bid_backings_drop(struct bid_backings *backings, const struct stat *st);

/* Does libfuse have passthrough: 3.17 or later? */
bool bid_backing_compiled(void);

/*
 * Request passthrough of the kernel, with @stacked also for files of stacked file systems. False if the kernel does not offer
 * it.
 */
bool bid_backing_negotiate(struct fuse_conn_info *conn, bool stacked);

/*
 * Open the inode @number, whose checked file is @fd with the attributes @st, into @fi. Returns
 *	0			the kernel reads the file, and the caller may close @fd
 *	-EOPNOTSUPP	the daemon reads the file
 *	-ESTALE		handles of another file are open; the kernel repeats the LOOKUP
 *	-ENOMEM
 * After the first two the caller owes one bid_backing_close() of @ret_backing.
 */
int bid_backing_open(fuse_req_t req, fuse_ino_t number, int fd, const struct stat *st, struct fuse_file_info *fi,
		     struct bid_backing **ret_backing);

/* Get the attributes that the file of the inode @number, an artifact's, had when it was opened. False without an open handle. */
bool bid_backing_stat(struct bid_fs *fs, uint64_t number, struct stat *ret_st);

/*
 * The number of opens that the kernel refused, for the daemon to read. @ret_error is the last errno, -ELOOP for too many stacked
 * file systems, or 0. @backings may be NULL.
 */
uint64_t bid_backings_refused(struct bid_backings *backings, int *ret_error);

/* Close one handle. @by_kernel: one that the kernel read. The inode may be gone. */
void bid_backing_close(struct bid_backing *backing, bool by_kernel);

/* Free the attachment of an inode that goes. */
void bid_backing_detach(void *attachment);

#endif
