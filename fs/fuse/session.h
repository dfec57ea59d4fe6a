/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A mount, from mounting to unmounting: main() calls bid_session_run(), and exits with its result. */
#ifndef BID_FS_SESSION_H
#define BID_FS_SESSION_H

#include "api/store.h"
#include "options.h"

/* Exit statuses of a mount helper: mount(8), "EXIT STATUS". */
enum {
	BID_EXIT_OK = 0,
	BID_EXIT_USAGE = 1,
	BID_EXIT_SYSTEM = 2,
	BID_EXIT_MOUNT = 32,
};

/*
 * Mount @store according to @options, print the mount point when the mount answers, and serve the mount, in the background or,
 * with options->foreground, until it is unmounted. Returns an exit status; logs errors.
 */
int bid_session_run(struct bid_store *store, const struct bid_options *options);

#endif
