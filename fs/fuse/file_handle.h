/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_FS_FILE_HANDLE_H
#define BID_FS_FILE_HANDLE_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bid_backing;
struct bid_tmpfile;

/* One open file. */
struct bid_file_handle {
	struct bid_backing *backing; /* as part of which it counts as open; NULL if as none */
	bool by_kernel; /* read by the kernel: passthrough */
	struct bid_tmpfile *tmpfile; /* the temporary file that it is of; a use of it; NULL if of none */
	int fd; /* else read from here, or -1; owned */
	char *text; /* or from here, as it was when the file was opened; owned */
	size_t size;
};

/* NULL in no_open mode. */
static inline struct bid_file_handle *bid_file_handle_of(const struct fuse_file_info *fi)
{
	return (struct bid_file_handle *)(uintptr_t)fi->fh;
}

#endif
