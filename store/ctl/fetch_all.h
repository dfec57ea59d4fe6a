/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Download many artifacts at once. */
#ifndef BID_CTL_FETCH_ALL_H
#define BID_CTL_FETCH_ALL_H

#include "ctl/ctl.h"
#include "ctl/story.h"

struct ctl_wanted {
	struct bid_request request;
	/* Result: 0 with the artifact in the store, or a negative errno as of bid_broker_fetch(). */
	int error;
	char *why; /* last response, if possible another one than "absent"; NULL without a response. Owned by the caller */
	bool changed; /* @why says that this server has other bytes than the first download */
	unsigned remembered_s; /* with -ENOENT: remaining seconds of the negative cache entry; 0 without one */
	uint64_t bytes; /* received, successful or not */
	struct ctl_story *story; /* receives all responses, for the caller to report; NULL for none. Borrowed */
	uint64_t handle; /* request handle; 0 without a request */
	int event; /* eventfd that signals its end; borrowed */
};

/*
 * Download all @wanted artifacts into @store, several at a time, from the servers of the command line or else the environment. A
 * signal that ends programs cancels the remaining downloads. Starts threads, and ends them. Returns CTL_DONE whatever the single
 * results; or an exit status: after an error message, or CTL_SIGNAL plus the signal.
 */
enum ctl_status ctl_fetch_all(const struct ctl *ctl, struct bid_store *store, struct ctl_wanted *wanted, size_t n);

#endif
