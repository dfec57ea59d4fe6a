/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The servers of the options or the environment, for the broker.
 *
 *	bid_servers_check()	for each url=
 *	bid_servers_new()	before the mount
 *	bid_servers_start()	after the fork, with the broker
 *	bid_servers_free()	after bid_broker_free()
 */
#ifndef BID_FS_SERVERS_H
#define BID_FS_SERVERS_H

#include "api/broker.h"
#include "options.h"

struct bid_servers;

/* Check that @url can be a server. 0, or a negative errno after an error message. */
int bid_servers_check(const char *url);

/* Read the URLs and the settings. Borrows @options. */
int bid_servers_new(const struct bid_options *options, struct bid_servers **ret_servers);

/* Add the servers to @broker. After the fork. */
int bid_servers_start(struct bid_servers *servers, struct bid_broker *broker);

/* Call after bid_broker_free(). @servers may be NULL. */
void bid_servers_free(struct bid_servers *servers);

/* Does any URL need the network? */
bool bid_servers_are_remote(const struct bid_servers *servers);

/*
 * Call @fn with each file and directory that the environment names, and with each tree of a file:// URL. Returns the first
 * result other than 0, or 0.
 */
int bid_servers_each_path(const struct bid_servers *servers, int (*fn)(void *user, const char *path, bool tree), void *user);

#endif
