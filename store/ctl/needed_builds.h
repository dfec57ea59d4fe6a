/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The builds named by a profile, a core file, a process or a list, for "bidctl get" of many. */
#ifndef BID_CTL_NEEDED_BUILDS_H
#define BID_CTL_NEEDED_BUILDS_H

#include "ctl/perf_data.h"

/*
 * Read the builds that --perf-data, --core or --pid names, or else a list on standard input, into @needs in the order of their
 * download, with their paths ("" if unknown). A line of the list is "ID" or "ID NAME", as of perf-buildid-list(1).
 * Mapped files of a process are added to @store (NULL: to none) at once, while they are at hand. Returns CTL_DONE, or the exit
 * status after an error message. For a list with bad lines that is CTL_USAGE, and @needs has the good lines. The caller releases
 * @needs in either case.
 */
enum ctl_status ctl_needs_read(const struct ctl *ctl, struct bid_store *store, struct ctl_perf_data *needs);

#endif
