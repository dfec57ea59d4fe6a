// SPDX-License-Identifier: LGPL-2.1-or-later
/* READ: of open files, and in no_open mode by inode. */
#include "fuse/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "fuse/attr.h"
#include "fuse/find_or_fetch.h"
#include "synthetic.h"

static void reply_text(fuse_req_t req, const char *text, size_t len, size_t size, off_t offset)
{
	size_t rest = offset >= 0 && (size_t)offset < len ? len - (size_t)offset : 0;
	size_t n = size < rest ? size : rest;
	/* the reader may close the file, which frees the text, before write(2) returns */
	bid_auto_free char *copy = malloc(n + 1);

	if (!copy) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	memcpy(copy, text + len - rest, n);
	fuse_reply_buf(req, copy, n);
}

static void reply_fd(fuse_req_t req, int fd, size_t size, off_t offset)
{
	struct fuse_bufvec data = FUSE_BUFVEC_INIT(size);

	data.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	data.buf[0].fd = fd;
	data.buf[0].pos = offset;
	fuse_reply_data(req, &data, FUSE_BUF_NO_SPLICE);
}

/* no_open: the broker has found or fetched the file. */
static void finish_read(fuse_req_t req, struct bid_wanted *wanted, int error, struct bid_file *file)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct stat st = file->st;
	struct bid_cached_fd *cached;
	int r;

	if (error < 0) {
		fuse_reply_err(req, error == -EINTR || error == -EACCES ? -error : EIO);
		return;
	}
	if (bid_is_other_version(fs, &wanted->inode, &st)) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	r = bid_fd_cache_insert(fs->fd_cache, wanted->inode.number, file, &cached);
	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	reply_fd(req, file->fd >= 0 ? file->fd : bid_cached_fd_descriptor(cached), wanted->size, wanted->offset);
	bid_fd_cache_unref(fs->fd_cache, cached);
}

static void read_kcore_file(fuse_req_t req, const struct bid_inode *inode, size_t size, off_t offset)
{
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_open_kcore(bid_fs_of(req)->store, inode->node.path, &file);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		reply_fd(req, file.fd, size, offset);
	bid_file_release(&file);
}

static void read_unopened(fuse_req_t req, const struct bid_inode *inode, size_t size, off_t offset)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_wanted wanted = {
		.artifact = bid_node_artifact(&inode->node),
		.inode = *inode,
		.is_read = true,
		.size = size,
		.offset = offset,
	};
	bid_auto_fd int own = -1;
	struct bid_cached_fd *cached;
	struct stat st;
	int reading;

	if (inode->node.type == BID_NODE_KCORE_FILE) {
		read_kcore_file(req, inode, size, offset);
		return;
	}
	if (inode->node.type != BID_NODE_FILE) {
		bid_auto_free char *text = NULL;
		int r = bid_synthetic_make(fs, &inode->node, &text, &st);

		if (r < 0)
			fuse_reply_err(req, -r);
		else
			reply_text(req, text, (size_t)st.st_size, size, offset);
		return;
	}
	cached = bid_fd_cache_find(fs->fd_cache, inode->number, &wanted.artifact, &st, NULL);
	if (cached && bid_is_other_version(fs, inode, &st)) {
		fuse_reply_err(req, ESTALE);
		bid_fd_cache_unref(fs->fd_cache, cached);
		return;
	}
	reading = cached ? bid_cached_fd_open(cached, &own) : -1;
	if (reading >= 0) {
		/* the kernel may forget the inode, which owns the subpath, after the answer */
		bid_store_used(fs->store, &wanted.artifact);
		reply_fd(req, reading, size, offset);
	}
	bid_fd_cache_unref(fs->fd_cache, cached);
	if (reading < 0)
		bid_find_or_fetch(req, &wanted, finish_read);
}

/* The descriptor of a handle without a text. */
static int fd_of(const struct bid_file_handle *handle)
{
	if (handle->cached)
		return bid_cached_fd_descriptor(handle->cached);
	return handle->tmpfile ? bid_written_file_fd(handle->tmpfile->file) : handle->probes_fd;
}

void bid_op_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	const struct bid_file_handle *handle = bid_file_handle_of(fi);
	struct bid_inode buffer, *inode;

	if (fs->mode == BID_MODE_NO_OPEN) {
		inode = bid_inodes_find(fs->inodes, number, &buffer);
		if (inode)
			read_unopened(req, inode, size, offset);
		else
			fuse_reply_err(req, ESTALE);
	} else if (handle->text) {
		reply_text(req, handle->text, handle->size, size, offset);
	} else {
		reply_fd(req, fd_of(handle), size, offset);
	}
}
