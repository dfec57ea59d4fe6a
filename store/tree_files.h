/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a tree of files by build-id has an artifact. Blocks as long as the file system does. */
#ifndef BID_TREE_FILES_H
#define BID_TREE_FILES_H

#include <limits.h>
#include <sys/types.h>

#include "api/artifact.h"

#define BID_TREE_NAME_MAX (PATH_MAX + 256)

struct bid_tree_file {
	int fd; /* owned; -1 if there is none */
	uint64_t size;
	bool is_public; /* its mode, and the directories that it is in, let everybody read it */
	int64_t modified; /* seconds since the epoch */
	bool proves_absence; /* with -ENOENT: nobody else could have been asked for it */
	char name[BID_TREE_NAME_MAX]; /* below the tree; "" if it is not there */
};

#define BID_TREE_FILE_NONE ((struct bid_tree_file){ .fd = -1 })

/*
 * The artifact in the tree at @path, which is laid out as debuginfod's web API,
 *
 *   buildid/ID/{executable,debuginfo,source/ABS/PATH,section/NAME}
 *
 * or as the debuggers' directory,
 *
 *   .build-id/xx/rest, .build-id/xx/rest.debug
 *
 * or as perf's build-id cache,
 *
 *   .build-id/xx/rest/{elf,debug}
 *
 * where the first two digits of ID are xx. Links that lead out of it are not followed. Returns 0; -ENOENT if it has no such file;
 * -ENOTDIR if there is neither directory, as where nothing is mounted; -EDEADLK if the tree is on the device @own; -EISDIR and
 * -EINVAL for what is no regular file; or the error of the file system. @ret_file is changed in any case, and to be released.
 */
int bid_tree_open(const char *path, dev_t own, const struct bid_request *request, const char *const *links,
		  struct bid_tree_file *ret_file);

void bid_tree_file_release(struct bid_tree_file *file);

#endif
