/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a tree of files by build-id has an artifact. Blocks as long as the file system does. */
#ifndef BID_FETCH_FILE_TREE_H
#define BID_FETCH_FILE_TREE_H

#include <limits.h>
#include <sys/types.h>

#include "api/artifact.h"

#define BID_FILE_TREE_NAME_MAX (PATH_MAX + 256)

struct bid_file_tree_file {
	int fd; /* owned; -1 if there is none */
	uint64_t size;
	bool is_public; /* its mode and its directories let all users read it */
	int64_t modified; /* seconds since the epoch */
	bool proves_absence; /* with -ENOENT: no server could have the file either */
	char name[BID_FILE_TREE_NAME_MAX]; /* path below the tree; "" if absent */
};

#define BID_FILE_TREE_FILE_NONE ((struct bid_file_tree_file){ .fd = -1 })

/*
 * Open the artifact in the tree at @path. Its layout is that of debuginfod's web API,
 *
 *   buildid/ID/{executable,debuginfo,source/ABS/PATH,section/NAME}
 *
 * or that of the debuggers' directory,
 *
 *   .build-id/xx/rest, .build-id/xx/rest.debug
 *
 * or that of perf's build-id cache,
 *
 *   .build-id/xx/rest/{elf,debug}
 *
 * xx are the first two digits of ID. Does not follow links out of the tree. Changes @ret_file in any case; the caller releases it.
 * Returns 0; -ENOENT without such a file; -ENOTDIR with neither directory, for example before a mount; -EDEADLK for a tree on the
 * device @own; -EISDIR and -EINVAL for anything but a regular file; or the error of the file system.
 */
int bid_file_tree_open(const char *path, dev_t own, const struct bid_request *request, const char *const *links,
		       struct bid_file_tree_file *ret_file);

void bid_file_tree_release(struct bid_file_tree_file *file);

#endif
