/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * URLs of servers:
 *
 *   bid_url_behind_policy()	"ima:enforcing URL" of DEBUGINFOD_URLS
 *   bid_url_normalise()	the URL of a server: for libcurl, and for an appended path
 *     bid_url_for_request()	... the URL of an artifact, by HTTP
 *     bid_url_tree_path()	... the directory of a file:// URL
 */
#ifndef BID_FETCH_URL_H
#define BID_FETCH_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "api/artifact.h"

#define BID_URL_MAX 2048 /* characters of a server's URL */

/*
 * Normalise the URL of a server, without trailing slashes; the caller frees it. Returns 0; -EPROTONOSUPPORT unless it is http://,
 * https:// or file://; -EINVAL for no URL, for a query or a fragment, or for more than BID_URL_MAX characters.
 */
int bid_url_normalise(const char *url, char **ret_url);

/* Return the URL in @text, "ima:enforcing URL", "ima:ignore URL" or a URL, and set *@ret_enforcing, which may be NULL. */
const char *bid_url_behind_policy(const char *text, bool *ret_enforcing);

/* Is @url a file:// URL? */
bool bid_url_is_tree(const char *url);

/* Returns 0 and the directory of a file:// URL, which the caller frees; -EINVAL or -ENOMEM. */
int bid_url_tree_path(const char *url, char **ret_path);

/*
 * Make the URL of @artifact at the server @base (debuginfod(8), "WEBAPI"); the caller frees it. Returns 0, -EOPNOTSUPP for a kind
 * outside debuginfod's, or -EINVAL for a missing or unexpected subpath.
 */
int bid_url_for_request(const char *base, const struct bid_artifact *artifact, char **ret_url);

/* Have two URLs the same scheme, host and port? */
bool bid_url_same_server(const char *one, const char *other);

#endif
