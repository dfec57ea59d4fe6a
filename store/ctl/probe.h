/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The build and its probes, shared by the files of "bidctl probe". */
#ifndef BID_CTL_PROBE_H
#define BID_CTL_PROBE_H

#include <limits.h>

#include "ctl/ctl.h"
#include "ctl/probe_file.h"

struct ctl_probe_target {
	struct bid_id id;
	bool kernel; /* the operand was "kernel" */
	char path[PATH_MAX]; /* real path of the named file; "" for an id */
};

/*
 * Open the store, find the build that @operand names (an id, a file, or "kernel"), and read its definitions. Reports its errors
 * itself; the caller frees @ret_store and releases @ret_file in any case.
 */
enum ctl_status ctl_probe_open(const struct ctl *ctl, const char *operand, struct bid_store **ret_store,
			       struct ctl_probe_target *ret_target, struct ctl_probe_file *ret_file);

/* Does one of the @n patterns at @patterns match @probe? Without patterns each probe matches. */
bool ctl_probe_wanted(const struct ctl_probe *probe, char *const *patterns, int n);

/* Return the first pattern without a matching probe in @file; NULL if all match. */
const char *ctl_probe_unmatched(const struct ctl_probe_file *file, char *const *patterns, int n);

/* Run "probe apply" with the operands @argv. */
enum ctl_status ctl_probe_apply(const struct ctl *ctl, int argc, char **argv);

#endif
