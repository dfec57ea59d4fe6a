/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The builds named by a profile, a core file, a process or a list, for "bidctl get" of many. */
#ifndef BID_CTL_NEEDED_BUILDS_H
#define BID_CTL_NEEDED_BUILDS_H

#include "ctl/perf_data.h"

/* Source of the names: exactly one of these. */
enum ctl_needs_from {
	CTL_NEEDS_NONE = 0, /* a get with one build as its operand */
	CTL_NEEDS_PERF_DATA,
	CTL_NEEDS_CORE,
	CTL_NEEDS_PID,
	CTL_NEEDS_LIST, /* standard input: "ID" or "ID NAME" in each line, as perf-buildid-list(1) prints them */
};

/*
 * Read the builds into @needs in the order of their download, with their paths ("" if unknown).
 * Mapped files of a process are added to @store (NULL: to none) at once, while they are at hand. Returns CTL_DONE, or the exit
 * status after an error message. For a list with bad lines that is CTL_USAGE, and @needs has the good lines. The caller releases
 * @needs in either case.
 */
enum ctl_status ctl_needs_read(const struct ctl *ctl, enum ctl_needs_from from, struct bid_store *store,
			       struct ctl_perf_data *needs);

#endif
