/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon gives up what it does not need before it reads anything that others made. By landlock(7) it writes nothing but the
 * store, reads nothing but what it serves from and what the libraries need of the system, executes nothing, and connects to nobody
 * if there is no server to ask. By seccomp(2) it lacks the system calls that such a program never makes, and of root's rights it
 * keeps few. What is refused is an error like any other, and ends nothing. See mount.bidfs(8), SANDBOX.
 */
#ifndef BID_FS_SANDBOX_H
#define BID_FS_SANDBOX_H

#include "api/store.h"
#include "options.h"
#include "sandbox/servers.h"

struct bid_sandbox;

/*
 * Find out what there is, and what may be reached: before mounting, because the mount may be on the store. May @passthrough be
 * used? With options->sandbox BID_SANDBOX_ON, what cannot be had is an error, which was printed. All are borrowed, and not used
 * after this.
 */
int bid_sandbox_new(const struct bid_options *options, struct bid_store *store, const struct bid_servers *servers, bool passthrough,
		    struct bid_sandbox **ret_sandbox);

/* Is there anything to be confined by? Then the daemon will not be able to unmount. */
bool bid_sandbox_confines(const struct bid_sandbox *sandbox);

/* Be confined from now on: the calling process, which has no other threads yet. Errors were printed. */
int bid_sandbox_enter(struct bid_sandbox *sandbox);

/* What confines, such as "landlock 7, seccomp"; "none" if nothing does. */
const char *bid_sandbox_state(const struct bid_sandbox *sandbox);

/* Why not more; "" if that is all there is. */
const char *bid_sandbox_reason(const struct bid_sandbox *sandbox);

/* @sandbox may be NULL. What was entered stays. */
void bid_sandbox_free(struct bid_sandbox *sandbox);

#endif
