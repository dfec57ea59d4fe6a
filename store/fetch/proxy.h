/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which proxy libcurl takes from the environment: so that what is wrong with it is not said of the server. */
#ifndef BID_FETCH_PROXY_H
#define BID_FETCH_PROXY_H

#include <stdbool.h>
#include <stddef.h>

#define BID_PROXY_MAX 128 /* of a name, with its NUL */

/* "host:port" of the proxy for @url, without user name and password. False if the environment has none. */
bool bid_proxy_name(const char *url, char ret_name[static BID_PROXY_MAX]);

/*
 * The same, if that is where a connection for @url went, the last one, to @port; @trouble is what libcurl says of it. False if it
 * went to the server itself, as no_proxy has it, or to nobody, which is port 0.
 */
bool bid_proxy_asked(const char *url, unsigned port, const char *trouble, char ret_name[static BID_PROXY_MAX]);

#endif
