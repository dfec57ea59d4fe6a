/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The request handlers, by file. Each handler has its request answered once, perhaps later and from another thread. */
#ifndef BID_FS_OPS_H
#define BID_FS_OPS_H

#include <fuse_lowlevel.h>

#include "fs.h"

static inline struct bid_fs *bid_fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/*
 * One open file: the fh of the kernel. A read gets its bytes from one of the four members. ops_open.c makes it in OPEN and CREATE,
 * and frees it in RELEASE.
 */
struct bid_file_handle {
	struct bid_cached_fd *cached; /* a checked file, which counts this handle; or NULL */
	bool by_kernel; /* passthrough of @cached */
	struct bid_tmpfile *tmpfile; /* a reference; or NULL */
	int probes_fd; /* probe definitions; or -1; owned */
	char *text; /* a synthetic file; or NULL; owned */
	size_t size; /* bytes of the text */
};

/* NULL in no_open mode. */
static inline struct bid_file_handle *bid_file_handle_of(const struct fuse_file_info *fi)
{
	return (struct bid_file_handle *)(uintptr_t)fi->fh;
}

/* ops_lookup.c */
void bid_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void bid_op_forget(fuse_req_t req, fuse_ino_t number, uint64_t count);
void bid_op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *forgets);
void bid_op_readlink(fuse_req_t req, fuse_ino_t number);

/* ops_attr.c */
void bid_op_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void bid_op_setattr(fuse_req_t req, fuse_ino_t number, struct stat *wanted, int to_set, struct fuse_file_info *fi);
void bid_op_statfs(fuse_req_t req, fuse_ino_t number);

/* ops_readdir.c */
void bid_op_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void bid_op_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void bid_op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi);

/* ops_open.c */
void bid_op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void bid_op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);

/* ops_read.c */
void bid_op_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi);

/* ops_xattr.c */
void bid_op_getxattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t size);
void bid_op_listxattr(fuse_req_t req, fuse_ino_t number, size_t size);
void bid_op_setxattr(fuse_req_t req, fuse_ino_t number, const char *name, const char *value, size_t size, int flags);

/* ops_write.c */
void bid_op_mkdir(fuse_req_t req, fuse_ino_t number, const char *name, mode_t mode);
void bid_op_mknod(fuse_req_t req, fuse_ino_t number, const char *name, mode_t mode, dev_t device);
void bid_op_symlink(fuse_req_t req, const char *text, fuse_ino_t number, const char *name);
void bid_op_create(fuse_req_t req, fuse_ino_t number, const char *name, mode_t mode, struct fuse_file_info *fi);
void bid_op_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t size, off_t offset, struct fuse_file_info *fi);
void bid_op_flush(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void bid_op_fsync(fuse_req_t req, fuse_ino_t number, int only_data, struct fuse_file_info *fi);
void bid_op_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t to, const char *name);
void bid_op_rename(fuse_req_t req, fuse_ino_t number, const char *name, fuse_ino_t to, const char *new_name, unsigned flags);

/* ops_remove.c */
void bid_op_unlink(fuse_req_t req, fuse_ino_t number, const char *name);
void bid_op_rmdir(fuse_req_t req, fuse_ino_t number, const char *name);

/*
 * ops_open.c: Answer CREATE with the new file @node. The caller keeps @fd, which is open for reading and writing, and @tmpfile,
 * which may be NULL. Returns 0, or a negative errno that was answered; then no handle is open.
 */
int bid_open_created(fuse_req_t req, const struct bid_node *node, struct bid_tmpfile *tmpfile, int fd, struct fuse_file_info *fi);

/* init.c: Negotiate capabilities and choose the mode. */
void bid_op_init(void *userdata, struct fuse_conn_info *conn);

/*
 * init.c: Add to the answer to FUSE_INIT what libfuse before 3.17 leaves out. Without FUSE_PARALLEL_DIROPS a pending cache miss
 * blocks cache hits in its directory; without FUSE_HANDLE_KILLPRIV_V2 the kernel sends GETXATTR before each write. Call between
 * mounting and the first request.
 */
void bid_fix_init_reply(struct fuse_session *session);

#endif
