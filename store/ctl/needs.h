/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The builds that a profile, a core file, a process or a list names: what bidctl get of many is to bring. */
#ifndef BID_CTL_NEEDS_H
#define BID_CTL_NEEDS_H

#include "ctl/perf_data.h"

/* Where the builds are named: exactly one of these. */
enum ctl_needs_from {
	CTL_NEEDS_NONE = 0, /* of a get that names one build itself */
	CTL_NEEDS_PERF_DATA,
	CTL_NEEDS_CORE,
	CTL_NEEDS_PID,
	CTL_NEEDS_LIST, /* standard input: "ID" or "ID NAME" in each line, as perf-buildid-list(1) prints them */
};

/*
 * Read them into @needs, in the order in which they are wanted, with their path where that is known ("" if not). What a process has
 * mapped is at hand in this moment, and is added to @store, if that is not NULL. Returns CTL_DONE, or what to exit with after an
 * error message; CTL_USAGE of a list still with what its good lines name. @needs is to be released in either case.
 */
enum ctl_status ctl_needs_read(const struct ctl *ctl, enum ctl_needs_from from, struct bid_store *store,
			       struct ctl_recording *needs);

#endif
