/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds of this machine without a file: their ids and contents. */
#ifndef BID_CTL_RUNNING_KERNEL_H
#define BID_CTL_RUNNING_KERNEL_H

#include <stddef.h>
#include <sys/types.h>

#include <bid/id.h>

#include "api/server.h"

/*
 * Read the build-id among the notes (ELF gABI, "Note Section") in the file @path: /sys/kernel/notes, or the notes of a module. The
 * kernel writes them in its own byte order. Returns 0, -ENODATA without a build-id, or as open(2).
 */
int ctl_running_notes(const char *path, struct bid_id *ret_id);

/* Return the text for an error of ctl_running_notes(). */
const char *ctl_running_strerror(int error);

/* Read the running kernel's id from /sys/kernel/notes. Returns 0, -ENODATA without an id, or as open(2). */
int ctl_running_kernel(struct bid_id *ret_id);

/* Read the id of the vDSO that the kernel maps into this process. Returns 0, or -ENODATA without a vDSO. */
int ctl_running_vdso_id(struct bid_id *ret_id);

/* Read a file of the kernel as bid_read_file(), whatever size stat(2) shows. Returns 0, or as open(2). */
int ctl_running_read(const char *path, size_t max, char **ret_text, size_t *ret_len);

struct ctl_running_data {
	struct bid_artifact artifact; /* id and kind */
	const char *name; /* perf's name for it; static */
	mode_t mode; /* read permissions */
	char *data; /* owned */
	size_t len;
};

void ctl_running_data_release(struct ctl_running_data *data);

/* Read the symbol table of the running kernel. Returns 0, or a negative errno for ctl_running_why(). */
int ctl_running_kallsyms(struct ctl_running_data *ret_data);
const char *ctl_running_why(int error);

/* Copy the mapped vDSO. Returns 0, -ENOENT on an architecture or an emulator without one, -ENODATA without an id, -ENOMEM. */
int ctl_running_vdso(struct ctl_running_data *ret_data);

#endif
