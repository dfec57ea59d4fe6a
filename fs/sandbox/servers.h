/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The servers that the options or the environment name, as sources of the broker. */
#ifndef BID_FS_SERVERS_H
#define BID_FS_SERVERS_H

#include "api/broker.h"
#include "options.h"

struct bid_servers;

/* Can @url be a server's? 0, or a negative errno after an error message. */
int bid_servers_check(const char *url);

/* Which ones they are, and how they are to be asked. @options are borrowed. */
int bid_servers_new(const struct bid_options *options, struct bid_servers **ret_servers);

/* Give @broker its sources. After daemonising. */
int bid_servers_start(struct bid_servers *servers, struct bid_broker *broker);

/* After the broker. @servers may be NULL. */
void bid_servers_free(struct bid_servers *servers);

/* Is any of them asked over the network? */
bool bid_servers_are_remote(const struct bid_servers *servers);

/*
 * Call @fn with each file and directory that the environment names for them, and with each tree of a file:// URL. Ends early, and
 * returns that, when @fn returns something else than 0.
 */
int bid_servers_each_path(const struct bid_servers *servers, int (*fn)(void *user, const char *path, bool tree), void *user);

#endif
