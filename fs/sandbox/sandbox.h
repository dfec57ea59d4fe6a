/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sandbox: the daemon gives up privileges before it reads files of other people. Landlock allows it to write the store, to read
 * stores and files of the libraries, and to connect to servers. seccomp(2) allows the system calls that it needs. Run as root, it
 * keeps the capabilities over files. A refused operation fails with an errno. See mount.bidfs(8), SANDBOX.
 *
 *	bid_sandbox_new()	before the mount, which may cover the store
 *	bid_sandbox_enter()	after the last fork, before the first thread
 */
#ifndef BID_FS_SANDBOX_H
#define BID_FS_SANDBOX_H

#include "api/store.h"
#include "options.h"
#include "servers.h"

struct bid_sandbox;

/*
 * Collect the rules. @passthrough: the mode is possible. With BID_SANDBOX_ON an unavailable part is an error; errors are logged.
 * The arguments are not used after the call.
 */
int bid_sandbox_new(const struct bid_options *options, struct bid_store *store, const struct bid_servers *servers, bool passthrough,
		    struct bid_sandbox **ret_sandbox);

/* Is any part available? A confined daemon cannot unmount. */
bool bid_sandbox_confines(const struct bid_sandbox *sandbox);

/* Confine the calling process, which has one thread. Logs errors. */
int bid_sandbox_enter(struct bid_sandbox *sandbox);

/* The active parts, such as "landlock 7, seccomp"; "none" without any. */
const char *bid_sandbox_state(const struct bid_sandbox *sandbox);

/* The reason against the other parts; "" if all are active. */
const char *bid_sandbox_reason(const struct bid_sandbox *sandbox);

/* @sandbox may be NULL. The process stays confined. */
void bid_sandbox_free(struct bid_sandbox *sandbox);

#endif
