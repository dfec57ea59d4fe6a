// SPDX-License-Identifier: LGPL-2.1-or-later
/* GETATTR, SETATTR, STATFS. */
#include "fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fuse/attr.h"
#include "fuse/find_or_fetch.h"
#include "fuse/reply.h"

enum { SHOWN = 0555 }; /* mode bits of artifacts that readers see */

static void finish_getattr(fuse_req_t req, struct bid_wanted *wanted, int error, struct bid_file *file)
{
	struct bid_fs *fs = bid_fs_of(req);
	const struct bid_inode *inode = &wanted->inode;
	bool another = error == 0 && bid_is_other_version(fs, inode, &file->st);
	/* an open file keeps its attributes, also without a name in the store */
	bool open = (error < 0 || another) && bid_fd_cache_stat(fs->fd_cache, inode->number, &file->st);

	if (open || (error == 0 && !(another && fs->mode == BID_MODE_NO_OPEN)))
		bid_reply_attr(req, inode, &file->st, BID_TTL_STORE);
	else
		fuse_reply_err(req, ESTALE); /* the kernel walks the path again, and LOOKUP sends requests */
}

static void get_artifact(fuse_req_t req, const struct bid_inode *inode)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_wanted wanted = { .artifact = bid_node_artifact(&inode->node), .inode = *inode };
	struct bid_file file = BID_FILE_NONE;
	struct bid_cached_fd *cached = bid_fd_cache_find(fs->fd_cache, inode->number, &wanted.artifact, &file.st, NULL);
	int r = cached ? 0 : bid_stat_unopened(fs, &inode->node, &file.st);

	if (r < 0)
		r = bid_store_find(fs->store, &wanted.artifact, BID_NEVER_DERIVE, &file);
	if (r == -EAGAIN)
		bid_find_or_fetch(req, &wanted, finish_getattr);
	else
		finish_getattr(req, &wanted, r, &file);
	bid_fd_cache_unref(fs->fd_cache, cached);
	bid_file_release(&file);
}

void bid_op_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	struct stat st;

	if (!inode) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	if (inode->node.type == BID_NODE_TMPFILE || inode->node.type == BID_NODE_KCORE_FILE) {
		if (bid_stat_unopened(fs, &inode->node, &st) < 0)
			fuse_reply_err(req, ESTALE);
		else
			bid_reply_attr(req, inode, &st, BID_TTL_STORE);
		return;
	}
	if (inode->node.type == BID_NODE_FILE)
		get_artifact(req, inode);
	else
		bid_reply_attr(req, inode, NULL, bid_attr_timeout(fs, &inode->node));
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
		return set_file(bid_written_file_fd(tmpfile->file), wanted, to_set, 0);
	r = bid_written_file_lock(tmpfile->file);
	if (r < 0)
		return r;
	r = set_file(bid_written_file_fd(tmpfile->file), wanted, to_set, bid_fs_file_mode(fs));
	bid_written_file_unlock(tmpfile->file);
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
	struct bid_artifact artifact = bid_node_artifact(&inode->node);
	mode_t modes = bid_fs_file_mode(fs) & (artifact.kind == BID_KIND_KALLSYMS ? S_IRWXU : 0755);
	struct bid_file file = BID_FILE_NONE;
	struct stat wanted = *attr;
	int r;

	if (inode->node.type != BID_NODE_FILE || to_set & FUSE_SET_ATTR_SIZE)
		return -EPERM;
	r = bid_store_find(fs->store, &artifact, BID_MAY_DERIVE, &file);
	if (r < 0)
		return r;
	wanted.st_mode = (file.st.st_mode & ~modes) | (attr->st_mode & modes);
	artifact.kind = file.kind;
	if ((to_set & FUSE_SET_ATTR_UID && attr->st_uid != file.st.st_uid) ||
	    (to_set & FUSE_SET_ATTR_GID && attr->st_gid != file.st.st_gid)) {
		r = -EPERM;
	} else if (!is_set(&file.st, &wanted, to_set)) {
		r = bid_store_has_alone(fs->store, &artifact, &file.st) ? set_file(file.fd, &wanted, to_set, ALLPERMS) : -EPERM;
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
		tmpfile = bid_tmpfiles_find_number(fs->tmpfiles, inode->node.tmpfile);
		r = tmpfile ? set_tmpfile(fs, tmpfile, wanted, to_set) : -ESTALE;
		bid_tmpfile_unref(fs->tmpfiles, tmpfile);
	} else if (bid_node_is_probes(&inode->node)) {
		/* perf writes derived definitions anew */
		r = bid_store_open_probes(fs->store, &inode->node.id, NULL,
					  to_set & FUSE_SET_ATTR_SIZE && wanted->st_size == 0 ? &BID_FILE_NONE : NULL, &fd);
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

void bid_op_statfs(fuse_req_t req, fuse_ino_t number)
{
	struct statvfs statvfs;
	int r = bid_store_statfs(bid_fs_of(req)->store, &statvfs);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_statfs(req, &statvfs);
}
