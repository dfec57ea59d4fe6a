/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that is written as a whole or not at all. */
#ifndef BID_CTL_OUTFILE_H
#define BID_CTL_OUTFILE_H

#include <stdbool.h>

struct ctl_outfile {
	const char *path; /* borrowed; "-" is standard output */
	int fd; /* to write to; -1 in a released one. Owned, but for standard output */
	bool direct; /* no file that could be replaced: a pipe, a device */
	char *temp; /* the name it has until then, or NULL; owned */
};

#define CTL_OUTFILE_NONE ((struct ctl_outfile){ .fd = -1 })

/* Begin to write @path, or "-". Where that is a file, nobody sees anything of it yet. 0, or as open(2). */
int ctl_outfile_open(struct ctl_outfile *file, const char *path);

/* It is complete: bring it to disk, and let it take the place of an older one. */
int ctl_outfile_commit(struct ctl_outfile *file);

/* What was not committed is gone. */
void ctl_outfile_release(struct ctl_outfile *file);

#endif
