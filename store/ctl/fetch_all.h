/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Artifacts that a command wants in the store, and their download. */
#ifndef BID_CTL_FETCH_ALL_H
#define BID_CTL_FETCH_ALL_H

#include "ctl/ctl.h"
#include "ctl/lookup_trace.h"

struct ctl_build;

struct ctl_wanted {
	struct bid_artifact artifact; /* its subpath is borrowed */
	struct ctl_build *build; /* the build that needs it, or NULL; borrowed */
	/* Result: 0 with the artifact in the store, or a negative errno as of bid_broker_fetch(). */
	int error;
	char *why; /* last response, if possible another one than "absent", with the remedy; NULL without a response. Owned */
	uint64_t bytes; /* received, successful or not */
	struct ctl_trace trace; /* owned */
	uint64_t waiter_id; /* 0 without a request */
	int event; /* eventfd that signals its end; borrowed */
};

/* Start with a zeroed struct. */
struct ctl_wanted_list {
	struct ctl_wanted *wanted; /* owned */
	size_t n, room;
	void *seen; /* tree of tsearch(3) of the requests of ctl_want_once(); owned */
	int refresh_error; /* error of the refresh of a mount over the store, or 0 */
};

void ctl_wanted_release(struct ctl_wanted_list *list);

/* Append @artifact for @build (may be NULL). Returns 0 or -ENOMEM. */
int ctl_want(struct ctl_wanted_list *list, const struct bid_artifact *artifact, struct ctl_build *build);

/* As ctl_want(), for the artifact @kind of @id, unless an earlier call was for the same one. */
int ctl_want_once(struct ctl_wanted_list *list, const struct bid_id *id, enum bid_kind kind, struct ctl_build *build);

/*
 * Append the shared files of dwz(1): debug information shrunk by dwz(1) is useless without the file in its .gnu_debugaltlink. Looks
 * into the debug information that @store has. Returns 0 or -ENOMEM.
 */
int ctl_want_dwz(struct ctl_wanted_list *list, struct bid_store *store);

/*
 * Download the artifacts of @list from @first on into @store, several at a time, from the servers of the command line or else the
 * environment. A store below a mount gets them through the mount. A signal that ends programs cancels the remaining downloads.
 * Starts threads, and ends them. Returns CTL_DONE whatever the single results; or an exit status: after an error message, or
 * CTL_SIGNAL plus the signal.
 */
enum ctl_status ctl_fetch_all(const struct ctl *ctl, struct bid_store *store, struct ctl_wanted_list *list, size_t first);

/* Open an artifact of @store, below a mount through the mount. Returns 0, or as bid_store_find() or open(2). */
int ctl_open_artifact(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file);

#endif
