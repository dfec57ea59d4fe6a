// SPDX-License-Identifier: LGPL-2.1-or-later
/* The twin of servers.c for a build without fetching. */
#include "servers.h"

#include <errno.h>

#include "base/log.h"

int bid_servers_check(const char *url)
{
	bid_error("this is built without fetching: 'url='");
	return -EPROTONOSUPPORT;
}

int bid_servers_add(struct bid_broker *broker, const struct bid_options *options, struct bid_servers **ret_servers)
{
	*ret_servers = NULL;
	return 0;
}

void bid_servers_free(struct bid_servers *servers)
{
}
