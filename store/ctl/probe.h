/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of "bidctl probe" share: which build is meant, and what is known of its probes. */
#ifndef BID_CTL_PROBE_H
#define BID_CTL_PROBE_H

#include <limits.h>

#include "ctl/ctl.h"
#include "ctl/probe_file.h"

struct ctl_probed {
	struct bid_id id;
	bool kernel; /* the operand was "kernel" */
	char path[PATH_MAX]; /* the real one of the file that was named; "" for an id */
};

/* Which build does @operand name: an id, a file, or "kernel"? Reports its errors itself. */
enum ctl_status ctl_probed_find(const struct ctl *ctl, struct bid_store *store, const char *operand, struct ctl_probed *ret_probed);

/* Its definitions. Reports its errors itself; the caller releases @ret_file in any case. */
enum ctl_status ctl_probed_read(struct bid_store *store, const struct ctl_probed *probed, struct ctl_probe_file *ret_file);

/* Is @probe one of those that the @n patterns at @patterns want: any of them, or any at all? */
bool ctl_probe_wanted(const struct ctl_probe *probe, char *const *patterns, int n);

/* The first of the patterns that no probe of @file fits; NULL if there is none. */
const char *ctl_probe_unmatched(const struct ctl_probe_file *file, char *const *patterns, int n);

/* What "probe apply" does; @argv are its operands. */
enum ctl_status ctl_probe_apply(const struct ctl *ctl, int argc, char **argv);

#endif
