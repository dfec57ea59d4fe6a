/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fetching many artifacts at once. */
#ifndef BID_CTL_FETCH_ALL_H
#define BID_CTL_FETCH_ALL_H

#include "ctl/ctl.h"

struct ctl_wanted {
	struct bid_request request;
	/* Filled in: 0 if it is in the store now, or a negative errno as of bid_broker_fetch(). */
	int error;
	char *why; /* what the last server said that does not have it; NULL if none was asked. Owned by the caller */
	bool changed; /* @why is that this server has other bytes than were fetched first */
	unsigned remembered_s; /* with -ENOENT: for so long it is remembered that no server has it; 0 if it is not */
	uint64_t bytes; /* that came in for it, in vain or not */
	uint64_t ticket; /* 0 if nothing was asked for it */
	int event; /* eventfd that its end is signalled on; borrowed */
};

/*
 * Bring all of them into @store, several at a time, with the servers that the command line or else the environment names. A signal
 * that ends programs gives up what is not there yet. Starts threads, and ends them. Returns CTL_DONE, whatever came of each; or
 * what to exit with: after an error message, or CTL_SIGNAL and the signal.
 */
enum ctl_status ctl_fetch_all(const struct ctl *ctl, struct bid_store *store, struct ctl_wanted *wanted, size_t n);

#endif
