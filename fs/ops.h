/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The handlers, by file. Each answers its request exactly once, perhaps later and from another thread. */
#ifndef BID_FS_OPS_H
#define BID_FS_OPS_H

#include "fs.h"

/* ops_name.c */
void bid_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void bid_op_forget(fuse_req_t req, fuse_ino_t number, uint64_t count);
void bid_op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *forgets);
void bid_op_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void bid_op_readlink(fuse_req_t req, fuse_ino_t number);
void bid_op_statfs(fuse_req_t req, fuse_ino_t number);

/* ops_dir.c */
void bid_op_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void bid_op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi);
void bid_op_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);

/* ops_file.c */
void bid_op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void bid_op_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *fi);
void bid_op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);

/* ops_xattr.c */
void bid_op_getxattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t size);
void bid_op_listxattr(fuse_req_t req, fuse_ino_t number, size_t size);

/* mode.c: when the kernel says hello */
void bid_op_init(void *userdata, struct fuse_conn_info *conn);

/* mode.c: why there can be no passthrough, whatever the kernel says; NULL if there can. Static. */
const char *bid_mode_obstacle(void);

#endif
