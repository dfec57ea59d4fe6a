// SPDX-License-Identifier: LGPL-2.1-or-later
/* servers.c for a build without fetching. */
#include "servers.h"

#include <errno.h>

#include "base/log.h"

int bid_servers_check(const char *url)
{
	bid_error("this build cannot fetch: 'url='");
	return -EPROTONOSUPPORT;
}

int bid_servers_new(const struct bid_options *options, struct bid_servers **ret_servers)
{
	*ret_servers = NULL;
	return 0;
}

int bid_servers_start(struct bid_servers *servers, struct bid_broker *broker)
{
	return 0;
}

void bid_servers_free(struct bid_servers *servers)
{
}

bool bid_servers_are_remote(const struct bid_servers *servers)
{
	return false;
}

int bid_servers_each_path(const struct bid_servers *servers, int (*fn)(void *user, const char *path, bool tree), void *user)
{
	return 0;
}
