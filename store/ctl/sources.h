/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whom bidctl get asks for what the store does not have. */
#ifndef BID_CTL_SOURCES_H
#define BID_CTL_SOURCES_H

#include "api/broker.h"
#include "ctl/ctl.h"

struct ctl_sources {
	struct bid_broker *broker; /* owned */
	struct bid_fetch *fetch; /* owned; what the broker's servers share. NULL if there are none */
};

#define CTL_SOURCES_NONE ((struct ctl_sources){ .broker = NULL })

/* Check --url and --offline. Returns CTL_DONE, or CTL_USAGE after an error message. */
enum ctl_status ctl_sources_check(const struct ctl *ctl);

/*
 * A broker for @store, which must outlive it, with the servers that the command line or else the environment names: none with
 * --offline, or for a store that cannot be written. Starts threads. Returns CTL_DONE, or what to exit with after an error message.
 * To be released in either case.
 */
enum ctl_status ctl_sources_init(struct ctl_sources *sources, const struct ctl *ctl, struct bid_store *store);

/* Why nobody was asked for an artifact of @kind that @store does not have, in words. Static. */
const char *ctl_sources_why_none(const struct ctl *ctl, const struct bid_store *store, enum bid_kind kind);

/*
 * Is there somebody to ask, and nobody is, as @store cannot be written? Then of what is not in it nothing is known. Not if a mount
 * covers it, which asks by itself.
 */
bool ctl_sources_are_barred(const struct ctl *ctl, const struct bid_store *store);

void ctl_sources_release(struct ctl_sources *sources);

#endif
