/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds of this machine that are no files: which ones are they, and what is in them? */
#ifndef BID_CTL_HERE_H
#define BID_CTL_HERE_H

#include <stddef.h>
#include <sys/types.h>

#include <bid/id.h>

#include "api/source.h"

/*
 * The build-id among the notes (ELF gABI, "Note Section") in the file @path, which the kernel writes in its own byte order:
 * /sys/kernel/notes, and those of modules. 0, -ENODATA if there is none, or as open(2).
 */
int ctl_here_notes(const char *path, struct bid_id *ret_id);

/* What an error of that is called. */
const char *ctl_here_strerror(int error);

/* The running kernel's id, from /sys/kernel/notes. 0, -ENODATA if it has none, or as open(2). */
int ctl_here_kernel(struct bid_id *ret_id);

/* The id of the vDSO that the kernel has mapped into this process. 0, or -ENODATA if there is none. */
int ctl_here_vdso_id(struct bid_id *ret_id);

/* A file of the kernel's, of any size by its stat(2), as bid_read_file(). 0, or as open(2). */
int ctl_here_read(const char *path, size_t max, char **ret_text, size_t *ret_len);

struct ctl_here_data {
	struct bid_request request; /* what it is */
	const char *name; /* that perf has for it; static */
	mode_t mode; /* who may read it */
	char *data; /* owned */
	size_t len;
};

void ctl_here_data_release(struct ctl_here_data *data);

/* The symbol table of the running kernel. 0, or a negative errno, of which ctl_here_why() makes words. */
int ctl_here_kallsyms(struct ctl_here_data *ret_data);
const char *ctl_here_why(int error);

/* The vDSO as it is mapped. 0, -ENOENT on an architecture or an emulator without one, -ENODATA without an id, -ENOMEM. */
int ctl_here_vdso(struct ctl_here_data *ret_data);

#endif
