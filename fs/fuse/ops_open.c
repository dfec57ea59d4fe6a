// SPDX-License-Identifier: LGPL-2.1-or-later
/* OPEN, RELEASE. In no_open mode the kernel sends neither. */
#include "fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/stat_data.h"
#include "fuse/attr.h"
#include "fuse/find_or_fetch.h"
#include "fuse/passthrough.h"
#include "fuse/reply.h"
#include "synthetic.h"

/* Make a handle that has nothing to read. NULL without memory. */
static struct bid_file_handle *new_handle(void)
{
	struct bid_file_handle *handle = calloc(1, sizeof(*handle));

	if (handle)
		handle->probes_fd = -1;
	return handle;
}

static void handle_free(struct bid_fs *fs, struct bid_file_handle *handle)
{
	if (handle->cached)
		bid_fd_cache_close_handle(fs->fd_cache, handle->cached, handle->by_kernel);
	bid_tmpfile_unref(fs->tmpfiles, handle->tmpfile);
	bid_close(handle->probes_fd);
	free(handle->text);
	free(handle);
}

static bool is_for_writing(const struct fuse_file_info *fi)
{
	return (fi->flags & O_ACCMODE) != O_RDONLY;
}

/* Make @handle one of @tmpfile. The kernel sends FLUSH for handles that write a file to be published at its last close(2). */
static void ref_tmpfile(fuse_req_t req, struct bid_file_handle *handle, struct bid_tmpfile *tmpfile, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);

	handle->tmpfile = bid_tmpfile_ref(fs->tmpfiles, tmpfile);
	if (is_for_writing(fi))
		bid_tmpfile_open(fs->tmpfiles, tmpfile, fuse_req_ctx(req)->pid);
	fi->noflush = !is_for_writing(fi) || tmpfile->kind == BID_KIND_NONE;
}

/* Free @handle, which the kernel does not know. */
static void close_handle(struct bid_fs *fs, struct bid_file_handle *handle, const struct fuse_file_info *fi)
{
	if (handle->tmpfile && is_for_writing(fi))
		bid_tmpfile_close(fs->tmpfiles, handle->tmpfile);
	handle_free(fs, handle);
}

static void reply_open(fuse_req_t req, struct bid_file_handle *handle, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);

	fi->fh = (uintptr_t)handle;
	/* the kernel dropped the answer */
	if (fuse_reply_open(req, fi) == -ENOENT)
		close_handle(fs, handle, fi);
}

static void open_text(fuse_req_t req, const struct bid_inode *inode, struct fuse_file_info *fi)
{
	struct bid_file_handle *handle = new_handle();
	struct stat st;
	int r = handle ? bid_synthetic_make(bid_fs_of(req), &inode->node, &handle->text, &st) : -ENOMEM;

	if (r < 0) {
		free(handle);
		fuse_reply_err(req, -r);
		return;
	}
	handle->size = (size_t)st.st_size;
	fi->direct_io = 1; /* each handle has a text of its own */
	fi->noflush = 1;
	reply_open(req, handle, fi);
}

/*
 * May a writer open @node: a temporary file, or probe definitions? The kernel would write a passed-through file of the store in
 * place, and would ask for attributes after each read of it.
 */
static bool is_writable(const struct bid_node *node)
{
	return node->type == BID_NODE_TMPFILE || bid_node_is_probes(node);
}

/* The open file is another one than the kernel has pages and attributes of. The notification takes no lock of the kernel. */
static void invalidate_pages(struct bid_fs *fs, const struct bid_inode *inode, struct fuse_file_info *fi)
{
	fi->keep_cache = 0;
	fuse_lowlevel_notify_inval_inode(fs->session, inode->number, -1, 0);
}

/* Open a handle of @cached, an artifact or a copy of /proc/kcore with the attributes @st. The caller puts @cached. */
static void open_file(fuse_req_t req, const struct bid_inode *inode, struct bid_cached_fd *cached, const struct stat *st,
		      struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_file_handle *handle = new_handle();
	int id, r = handle ? bid_fd_cache_open_handle(fs->fd_cache, cached, &id) : -ENOMEM;

	if (r < 0) {
		free(handle);
		fuse_reply_err(req, -r);
		return;
	}
	handle->cached = cached;
	handle->by_kernel = id;
	if (id)
		bid_passthrough_set(fi, id);
	/* the bytes of an id do not change; AUTO_INVAL_DATA covers another file */
	fi->keep_cache = !id;
	if (bid_set_version(fs, inode, st))
		invalidate_pages(fs, inode, fi);
	fi->noflush = 1;
	reply_open(req, handle, fi);
}

/* Open a handle of probe definitions, which takes over @fd. @same: the kernel has pages of the same text. */
static void open_definitions(fuse_req_t req, const struct bid_inode *inode, int fd, bool same, struct fuse_file_info *fi)
{
	struct bid_file_handle *handle = fd < 0 ? NULL : new_handle();

	if (!handle) {
		fuse_reply_err(req, fd < 0 ? EMFILE : ENOMEM);
		bid_close(fd);
		return;
	}
	handle->probes_fd = fd;
	fi->keep_cache = same;
	if (!same)
		invalidate_pages(bid_fs_of(req), inode, fi);
	fi->noflush = 1;
	reply_open(req, handle, fi);
}

int bid_open_created(fuse_req_t req, const struct bid_node *node, struct bid_tmpfile *tmpfile, int fd, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_found found = BID_FOUND_NONE;
	struct fuse_entry_param entry;
	struct bid_file_handle *handle;
	int r;

	r = fstat(fd, &found.st) < 0 ? -errno : bid_entry_make(fs, node, &found, &entry);
	if (r < 0) {
		fuse_reply_err(req, -r);
		return r;
	}
	handle = new_handle();
	if (handle && !tmpfile)
		handle->probes_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (!handle || (!tmpfile && handle->probes_fd < 0)) {
		r = handle ? -errno : -ENOMEM;
		free(handle);
		bid_forget(fs, entry.ino, 1);
		fuse_reply_err(req, -r);
		return r;
	}
	fi->noflush = 1;
	if (tmpfile)
		ref_tmpfile(req, handle, tmpfile, fi);
	fi->fh = (uintptr_t)handle;
	r = fuse_reply_create(req, &entry, fi);
	if (r != -ENOENT)
		return 0;
	/* the kernel dropped the answer */
	close_handle(fs, handle, fi);
	bid_forget(fs, entry.ino, 1);
	return r;
}

static void finish_open(fuse_req_t req, struct bid_wanted *wanted, int error, struct bid_file *file)
{
	bool probes = wanted->artifact.kind == BID_KIND_PROBES;
	struct bid_fs *fs = bid_fs_of(req);
	struct stat st = file->st;
	struct bid_cached_fd *cached = NULL;
	bid_auto_fd int own = -1;
	/* a file without a link is found by its path alone: the kernel repeats the LOOKUP */
	int r = error == -ENOENT ? -ESTALE : error < 0 ? -bid_visible_error(fs, error) : 0;

	/* definitions that were just derived: the writer gets a copy of the store */
	if (r == 0 && probes && is_for_writing(&wanted->fi))
		r = bid_store_open_probes(fs->store, &wanted->artifact.id, NULL, file, &own);
	else if (r == 0 && probes)
		own = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
	if (r == 0)
		r = bid_fd_cache_insert(fs->fd_cache, wanted->inode.number, file, &cached);
	if (r < 0)
		fuse_reply_err(req, -r);
	else if (probes)
		open_definitions(req, &wanted->inode, bid_steal_fd(&own), false, &wanted->fi);
	else
		open_file(req, &wanted->inode, cached, &st, &wanted->fi);
	bid_fd_cache_unref(fs->fd_cache, cached);
}

/* Open definitions of the store for a writer. Readers must find the same file. */
static struct bid_cached_fd *open_for_writing(struct bid_fs *fs, const struct bid_inode *inode, const struct bid_artifact *artifact,
					      struct stat *st, bool *same, int *ret_probes)
{
	struct bid_file found = BID_FILE_NONE;
	/* opening breaks a lease of another process, which then finishes its change */
	int r = bid_store_open_probes(fs->store, &artifact->id, NULL, NULL, ret_probes);

	/* those of a lower store or in memory: the writer gets a copy */
	if (r == -ENOENT && bid_store_find(fs->store, artifact, BID_NEVER_DERIVE, &found) == 0)
		r = bid_store_open_probes(fs->store, &artifact->id, NULL, &found, ret_probes);
	bid_file_release(&found);
	if (r == 0 && fstat(*ret_probes, st) == 0)
		bid_fd_cache_drop_other(fs->fd_cache, inode->number, st);
	return bid_fd_cache_find(fs->fd_cache, inode->number, artifact, st, same);
}

/* Open the file of @cached, and take its attributes again. */
static int open_kept(const struct bid_cached_fd *cached, int *ret_own, struct stat *st, bool *same)
{
	struct bid_stat_data stat_data = bid_stat_data_of(st);
	int number = bid_cached_fd_open(cached, ret_own);
	struct stat now;

	/* the holder of a lease may have changed the file */
	if (*ret_own >= 0 && fstat(*ret_own, &now) == 0 && !bid_stat_data_is_current(&stat_data, &now)) {
		*st = now;
		*same = false;
	}
	return number;
}

static void open_probes(fuse_req_t req, const struct bid_inode *inode, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_wanted wanted = { .artifact = bid_node_artifact(&inode->node), .inode = *inode, .fi = *fi };
	bid_auto_fd int own = -1;
	struct stat st = { 0 };
	struct bid_cached_fd *cached;
	bool same = false;

	if (is_for_writing(fi))
		cached = open_for_writing(fs, inode, &wanted.artifact, &st, &same, &own);
	else
		cached = bid_fd_cache_find(fs->fd_cache, inode->number, &wanted.artifact, &st, &same);
	if (own < 0 && cached) {
		int number = open_kept(cached, &own, &st, &same);

		if (own < 0 && number >= 0)
			own = fcntl(number, F_DUPFD_CLOEXEC, 3);
	}
	bid_fd_cache_unref(fs->fd_cache, cached);
	if (own < 0) {
		bid_find_or_fetch(req, &wanted, finish_open);
		return;
	}
	bid_store_used(fs->store, &wanted.artifact);
	open_definitions(req, inode, bid_steal_fd(&own), same, fi);
}

static void open_artifact(fuse_req_t req, const struct bid_inode *inode, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_wanted wanted = { .artifact = bid_node_artifact(&inode->node), .inode = *inode, .fi = *fi };
	struct stat st;
	struct bid_cached_fd *cached = bid_fd_cache_find(fs->fd_cache, inode->number, &wanted.artifact, &st, NULL);

	if (!cached) {
		bid_find_or_fetch(req, &wanted, finish_open);
		return;
	}
	/* the kernel may forget the inode, which owns the subpath, after the answer */
	bid_store_used(fs->store, &wanted.artifact);
	open_file(req, inode, cached, &st, fi);
	bid_fd_cache_unref(fs->fd_cache, cached);
}

static void open_tmpfile(fuse_req_t req, const struct bid_inode *inode, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_tmpfile *tmpfile = bid_tmpfiles_find_number(fs->tmpfiles, inode->node.tmpfile);
	struct bid_file_handle *handle = tmpfile ? new_handle() : NULL;

	if (!handle) {
		fuse_reply_err(req, tmpfile ? ENOMEM : ESTALE);
	} else {
		ref_tmpfile(req, handle, tmpfile, fi);
		reply_open(req, handle, fi);
	}
	bid_tmpfile_unref(fs->tmpfiles, tmpfile);
}

static void open_kcore_file(fuse_req_t req, const struct bid_inode *inode, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_file file = BID_FILE_NONE;
	struct bid_cached_fd *cached = NULL;
	int r = bid_store_open_kcore(fs->store, inode->node.path, &file);
	struct stat st = file.st;

	if (r == 0)
		r = bid_fd_cache_insert(fs->fd_cache, inode->number, &file, &cached);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		open_file(req, inode, cached, &st, fi);
	bid_fd_cache_unref(fs->fd_cache, cached);
}

void bid_op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);

	if (!inode)
		fuse_reply_err(req, ESTALE);
	else if (fs->mode == BID_MODE_NO_OPEN)
		fuse_reply_err(req, ENOSYS); /* the kernel sends no OPEN any more */
	else if (is_for_writing(fi) && !is_writable(&inode->node))
		fuse_reply_err(req, EPERM);
	else if (inode->node.type == BID_NODE_TMPFILE)
		open_tmpfile(req, inode, fi);
	else if (is_writable(&inode->node))
		open_probes(req, inode, fi);
	else if (inode->node.type == BID_NODE_FILE)
		open_artifact(req, inode, fi);
	else if (inode->node.type == BID_NODE_KCORE_FILE)
		open_kcore_file(req, inode, fi);
	else
		open_text(req, inode, fi);
}

void bid_op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_file_handle *handle = bid_file_handle_of(fi);

	/* the kernel may release the file of the OPEN that got ENOSYS */
	if (handle) {
		if (handle->tmpfile && is_for_writing(fi) && bid_tmpfile_close(fs->tmpfiles, handle->tmpfile))
			bid_tmpfile_last_close(fs->tmpfiles, handle->tmpfile);
		handle_free(fs, handle);
	}
	fuse_reply_err(req, 0);
}
