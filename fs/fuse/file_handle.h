/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Handles of open files.
 *
 *	ops_open.c makes them in OPEN and CREATE, and frees them in RELEASE; bid_file_handle_of() in requests between
 */
#ifndef BID_FS_FILE_HANDLE_H
#define BID_FS_FILE_HANDLE_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bid_fd;
struct bid_tmpfile;

/* One open file: the fh of the kernel. Reads come from one of four sources. */
struct bid_file_handle {
	struct bid_fd *file; /* a checked file, which counts this handle; or NULL */
	bool by_kernel; /* passthrough of @file */
	struct bid_tmpfile *tmpfile; /* a reference; or NULL */
	int probes; /* probe definitions; or -1; owned */
	char *text; /* a synthetic file; or NULL; owned */
	size_t size; /* bytes of the text */
};

/* NULL in no_open mode. */
static inline struct bid_file_handle *bid_file_handle_of(const struct fuse_file_info *fi)
{
	return (struct bid_file_handle *)(uintptr_t)fi->fh;
}

#endif
