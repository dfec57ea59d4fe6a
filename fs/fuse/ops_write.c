// SPDX-License-Identifier: LGPL-2.1-or-later
/* WRITE, FLUSH, FSYNC. */
#include "fuse/ops.h"

#include <errno.h>
#include <unistd.h>

#include "base/io.h"
#include "fuse/file_handle.h"
#include "write/publish_tmpfile.h"

static int write_probes(struct bid_fs *fs, fuse_ino_t number, int fd, const char *data, size_t size, off_t offset)
{
	struct stat st;
	int r = bid_pwrite_full(fd, data, size, offset);

	/* readers get this one of several files from now on */
	if (r == 0 && fstat(fd, &st) == 0)
		bid_fd_cache_drop_other(fs->fd_cache, number, &st);
	/* OPEN could not copy them into the store */
	return r == -EBADF ? -EPERM : r;
}

void bid_op_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct bid_file_handle *handle = bid_file_handle_of(fi);
	int r = -EPERM;

	if (handle && handle->tmpfile)
		r = bid_txn_write_at(handle->tmpfile->txn, data, size, offset);
	else if (handle && handle->probes >= 0)
		r = write_probes(bid_fs_of(req), number, handle->probes, data, size, offset);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, size);
}

void bid_op_flush(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_file_handle *handle = bid_file_handle_of(fi);
	int r = 0;

	/* the kernel sends no FLUSH any more */
	if (bid_fs_of(req)->mode == BID_MODE_NO_OPEN)
		r = -ENOSYS;
	else if (handle && handle->tmpfile)
		r = bid_publish_flush(bid_fs_of(req), handle->tmpfile, fuse_req_ctx(req)->pid);
	fuse_reply_err(req, -r);
}

void bid_op_fsync(fuse_req_t req, fuse_ino_t number, int only_data, struct fuse_file_info *fi)
{
	struct bid_file_handle *handle = bid_file_handle_of(fi);
	struct bid_fs *fs = bid_fs_of(req);
	int r = 0;

	if (handle && handle->tmpfile)
		r = fsync(bid_txn_fd(handle->tmpfile->txn)) < 0 ? -errno : 0;
	else if (fs->writable)
		r = bid_store_sync(fs->store); /* the kernel may read the file by itself */
	fuse_reply_err(req, -r);
}
