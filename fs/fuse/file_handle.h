/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_FS_FILE_HANDLE_H
#define BID_FS_FILE_HANDLE_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bid_backing;
struct bid_tmpfile;

/* One open file: the fh of the kernel. */
struct bid_file_handle {
	struct bid_backing *backing; /* backing of the inode; counts this handle; NULL for a text */
	bool by_kernel; /* passthrough */
	struct bid_tmpfile *tmpfile; /* a reference; NULL for files of the store */
	int fd; /* source of reads, or -1; owned */
	char *text; /* source of reads without a descriptor; owned */
	size_t size;
};

/* NULL in no_open mode. */
static inline struct bid_file_handle *bid_file_handle_of(const struct fuse_file_info *fi)
{
	return (struct bid_file_handle *)(uintptr_t)fi->fh;
}

#endif
