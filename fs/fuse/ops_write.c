// SPDX-License-Identifier: LGPL-2.1-or-later
/* WRITE, SETATTR, FLUSH, FSYNC. */
#include "fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "fuse/file_handle.h"
#include "fuse/reply.h"
#include "write/publish_tmpfile.h"

enum { SHOWN = 0555 }; /* mode bits of artifacts that readers see */

static int write_probes(struct bid_fs *fs, const struct bid_inode *inode, const char *data, size_t size, off_t offset)
{
	bid_auto_fd int fd = -1;
	struct stat st;
	int r = bid_store_open_probes(fs->store, &inode->node.id, NULL, true, &fd);

	if (r == 0)
		r = bid_pwrite_full(fd, data, size, offset);
	/* readers get this one of several files from now on */
	if (r == 0 && fstat(fd, &st) == 0)
		bid_fd_cache_drop_other(fs->fd_cache, inode->number, &st);
	return r;
}

static bool is_probes(const struct bid_node *node)
{
	return node->type == BID_NODE_FILE && node->kind == BID_KIND_PROBES;
}

void bid_op_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_file_handle *handle = bid_file_handle_of(fi);
	int r = -EPERM;

	if (handle && handle->tmpfile)
		r = bid_stage_write(handle->tmpfile->stage, data, size, offset);
	else if (!inode)
		r = -ESTALE;
	else if (is_probes(&inode->node))
		r = write_probes(fs, inode, data, size, offset);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, size);
}

/* Set the size, the times and the bits @modes of the mode of @fd. The owner stays. */
static int set_file(int fd, const struct stat *wanted, int to_set, mode_t modes)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };

	if (to_set & FUSE_SET_ATTR_SIZE && ftruncate(fd, wanted->st_size) < 0)
		return -errno;
	if (modes && to_set & FUSE_SET_ATTR_MODE && fchmod(fd, wanted->st_mode & modes) < 0)
		return -errno;
	if (to_set & FUSE_SET_ATTR_ATIME)
		times[0] = wanted->st_atim;
	if (to_set & FUSE_SET_ATTR_MTIME)
		times[1] = wanted->st_mtim;
	if (to_set & FUSE_SET_ATTR_ATIME_NOW)
		times[0].tv_nsec = UTIME_NOW;
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		times[1].tv_nsec = UTIME_NOW;
	return futimens(fd, times) < 0 ? -errno : 0;
}

/* Only the times of a published file change. */
static int set_tmpfile(const struct bid_fs *fs, const struct bid_tmpfile *tmpfile, const struct stat *wanted, int to_set)
{
	int r;

	if (!(to_set & (FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE)))
		return set_file(bid_stage_fd(tmpfile->stage), wanted, to_set, 0);
	r = bid_stage_lock(tmpfile->stage);
	if (r < 0)
		return r;
	r = set_file(bid_stage_fd(tmpfile->stage), wanted, to_set, bid_tmpfile_mode(fs));
	bid_stage_unlock(tmpfile->stage);
	return r;
}

/* Has the file @st these attributes already? Readers see no write bits and no access time. */
static bool is_set(const struct stat *st, const struct stat *wanted, int to_set)
{
	if (to_set & FUSE_SET_ATTR_MODE && (wanted->st_mode ^ st->st_mode) & SHOWN)
		return false;
	if (to_set & FUSE_SET_ATTR_MTIME)
		return wanted->st_mtim.tv_sec == st->st_mtim.tv_sec && wanted->st_mtim.tv_nsec == st->st_mtim.tv_nsec;
	return !(to_set & FUSE_SET_ATTR_MTIME_NOW);
}

/* Set mode and times of a published file, as programs that copy a cache do. The bytes of an id do not change. */
static int set_artifact(struct bid_fs *fs, const struct bid_inode *inode, const struct stat *attr, int to_set)
{
	struct bid_request request = bid_node_request(&inode->node);
	mode_t modes = bid_tmpfile_mode(fs) & (request.kind == BID_KIND_KALLSYMS ? S_IRWXU : 0755);
	struct bid_file file = BID_FILE_NONE;
	struct stat wanted = *attr;
	int r;

	if (inode->node.type != BID_NODE_FILE || to_set & FUSE_SET_ATTR_SIZE)
		return -EPERM;
	r = bid_store_find(fs->store, &request, &file);
	if (r < 0)
		return r;
	wanted.st_mode = (file.st.st_mode & ~modes) | (attr->st_mode & modes);
	request.kind = file.kind;
	if ((to_set & FUSE_SET_ATTR_UID && attr->st_uid != file.st.st_uid) ||
	    (to_set & FUSE_SET_ATTR_GID && attr->st_gid != file.st.st_gid)) {
		r = -EPERM;
	} else if (!is_set(&file.st, &wanted, to_set)) {
		r = bid_store_has_alone(fs->store, &request, &file.st) ? set_file(file.fd, &wanted, to_set, ALLPERMS) : -EPERM;
	}
	bid_file_release(&file);
	return r;
}

void bid_op_setattr(fuse_req_t req, fuse_ino_t number, struct stat *wanted, int to_set, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_tmpfile *tmpfile;
	bid_auto_fd int fd = -1;
	int r = 0;

	if (!inode) {
		r = -ESTALE;
	} else if (inode->node.type == BID_NODE_TMPFILE) {
		tmpfile = bid_tmpfiles_get(fs->tmpfiles, inode->node.tmpfile);
		r = tmpfile ? set_tmpfile(fs, tmpfile, wanted, to_set) : -ESTALE;
		bid_tmpfile_put(fs->tmpfiles, tmpfile);
	} else if (is_probes(&inode->node)) {
		/* perf writes derived definitions anew */
		r = bid_store_open_probes(fs->store, &inode->node.id, NULL, to_set & FUSE_SET_ATTR_SIZE && wanted->st_size == 0,
					  &fd);
		if (r == 0)
			r = set_file(fd, wanted, to_set, 0);
	} else if (bid_node_format(&inode->node) == S_IFREG) {
		r = set_artifact(fs, inode, wanted, to_set);
	} else if (to_set & FUSE_SET_ATTR_MODE && (wanted->st_mode & 07777) != bid_dir_mode(fs, &inode->node)) {
		r = -EPERM;
	}
	/* attributes of directories and links are ignored: programs that unpack an archive set them */
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		bid_op_getattr(req, number, NULL);
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
		r = fsync(bid_stage_fd(handle->tmpfile->stage)) < 0 ? -errno : 0;
	else if (fs->writable)
		r = bid_store_sync(fs->store); /* the kernel may read the file by itself */
	fuse_reply_err(req, -r);
}
