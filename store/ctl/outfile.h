/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An output file, written as a whole or not at all. */
#ifndef BID_CTL_OUTFILE_H
#define BID_CTL_OUTFILE_H

#include <stdbool.h>

struct ctl_outfile {
	const char *path; /* borrowed; "-" is standard output */
	int fd; /* descriptor to write to; -1 after release. Owned, but for standard output */
	bool direct; /* a pipe or a device, which has no older file to replace */
	char *temp; /* name until the commit, or NULL; owned */
};

#define CTL_OUTFILE_NONE ((struct ctl_outfile){ .fd = -1 })

/* Begin to write @path, or "-". A regular file appears at the commit. Returns 0, or as open(2). */
int ctl_outfile_open(struct ctl_outfile *file, const char *path);

/* Bring the complete file to disk, in place of an older one. */
int ctl_outfile_commit(struct ctl_outfile *file);

/* Release @file, and discard an uncommitted one. */
void ctl_outfile_release(struct ctl_outfile *file);

#endif
