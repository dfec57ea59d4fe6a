/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Servers and trees that "bidctl get" downloads from. */
#ifndef BID_CTL_SERVERS_H
#define BID_CTL_SERVERS_H

#include "api/broker.h"
#include "ctl/ctl.h"

struct ctl_servers {
	struct bid_broker *broker; /* owned */
	struct bid_fetch *fetch; /* shared by the broker's servers; owned. NULL without servers */
};

#define CTL_SERVERS_NONE ((struct ctl_servers){ .broker = NULL })

/* Check --url and --offline. Returns CTL_DONE, or CTL_USAGE after an error message. */
enum ctl_status ctl_servers_check(const struct ctl *ctl);

/*
 * Start a broker for @store with the servers of the command line or else the environment: none with --offline, or for a read-only
 * store. @store must outlive the broker. Starts threads. Returns CTL_DONE, or the exit status after an error message. The caller
 * releases @servers in either case.
 */
enum ctl_status ctl_servers_init(struct ctl_servers *servers, const struct ctl *ctl, struct bid_store *store);

/* Return the reason for no request to any server, for an artifact of @kind that @store lacks. Static. */
const char *ctl_servers_why_none(const struct ctl *ctl, const struct bid_store *store, enum bid_kind kind);

/*
 * Are there servers, all unused because @store is read-only? Then the absence of an artifact is unknown. False for a store below a
 * mount, which uses servers itself.
 */
bool ctl_servers_are_barred(const struct ctl *ctl, const struct bid_store *store);

void ctl_servers_release(struct ctl_servers *servers);

#endif
