/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds of this machine that are no files: which ones are they? */
#ifndef BID_CTL_HERE_H
#define BID_CTL_HERE_H

#include <bid/id.h>

/*
 * The build-id among the notes (ELF gABI, "Note Section") in the file @path, which the kernel writes in its own byte order:
 * /sys/kernel/notes, and those of modules. 0, -ENODATA if there is none, or as open(2).
 */
int ctl_here_notes(const char *path, struct bid_id *ret_id);

/* The running kernel's id, from /sys/kernel/notes. 0, -ENODATA if it has none, or as open(2). */
int ctl_here_kernel(struct bid_id *ret_id);

/* The id of the vDSO that the kernel has mapped into this process. 0, or -ENODATA if there is none. */
int ctl_here_vdso(struct bid_id *ret_id);

#endif
