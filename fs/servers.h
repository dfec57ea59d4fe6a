/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The servers that the options or the environment name, as sources of the broker. */
#ifndef BID_FS_SERVERS_H
#define BID_FS_SERVERS_H

#include <bid/broker.h>

#include "options.h"

struct bid_servers;

/* Can @url be a server's? 0, or a negative errno after an error message. */
int bid_servers_check(const char *url);

/* Give @broker its sources. After daemonising. The caller frees @ret_servers after the broker. */
int bid_servers_add(struct bid_broker *broker, const struct bid_options *options, struct bid_servers **ret_servers);

void bid_servers_free(struct bid_servers *servers);

#endif
