/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Server URLs: parsed here, once. What passes bid_url_normalise() can be given to libcurl and be extended by a path. */
#ifndef BID_FETCH_URL_H
#define BID_FETCH_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "api/artifact.h"

#define BID_URL_MAX 2048 /* characters of a server's URL */

/*
 * A server's URL without trailing slashes, for the caller to free. Returns 0, -EPROTONOSUPPORT if it is neither http://, https://
 * nor file://, -EINVAL if it is no URL, has a query or a fragment, or is longer than BID_URL_MAX.
 */
int bid_url_normalise(const char *url, char **ret_url);

/* Is it file://? */
bool bid_url_is_tree(const char *url);

/* The directory of a file:// URL, for the caller to free. 0, -EINVAL or -ENOMEM. */
int bid_url_tree_path(const char *url, char **ret_path);

/*
 * The URL of @request at the server @base (debuginfod(8), "WEBAPI"), for the caller to free. Returns 0, or -EOPNOTSUPP for a kind
 * that debuginfod does not have, or -EINVAL if a detail is missing or too much.
 */
int bid_url_for_request(const char *base, const struct bid_request *request, char **ret_url);

/*
 * Where a redirect from @from leads that says @to, in which bytes that no URL has, such as spaces, are encoded. @home, the URL that
 * was asked for first, gives user name and password away only to the place (scheme, host and port) that it names itself; whether
 * that is where it leads is told by @ret_home. Returns 0 and a URL for the caller to free; -EPROTONOSUPPORT for one that is not
 * followed: neither http:// nor https://, or from https:// to http://; -EINVAL for what is no URL; -ENOMEM.
 */
int bid_url_redirect(const char *home, const char *from, const char *to, char **ret_url, bool *ret_home);

#endif
