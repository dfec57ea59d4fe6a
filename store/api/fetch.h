/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sources that speak debuginfod's web API (debuginfod(8), "WEBAPI") over HTTP. All servers of one struct bid_fetch share one
 * network thread and its connections.
 */
#ifndef BID_API_FETCH_H
#define BID_API_FETCH_H

#include <sys/types.h>

#include "api/source.h"

struct bid_fetch;

struct bid_fetch_config {
	unsigned connect_ms; /* to be connected, TLS included; 0 means 5000 */
	/*
	 * From the request to the first byte of the answer: what does not begin within first_byte_ms (0 means 30000) is a trouble
	 * of the server, unless that answers others meanwhile; and it is waited for up to answer_ms, or four times as long if it
	 * does (0 means first_byte_ms, or 90000 if that is 0, too).
	 */
	unsigned first_byte_ms, answer_ms;
	/*
	 * Of a server that has never answered yet, in place of first_byte_ms: who asks for one artifact after the other is not to
	 * pay for its silence with each. 0 means 10000; more than first_byte_ms means that.
	 */
	unsigned first_contact_ms;
	unsigned stall_ms; /* without any byte in the middle of a body; 0 means 5000 */
	unsigned retries; /* after a transport error or a 5xx, with jittered back-off */
	/*
	 * Transfers at once per server, but for those that take longer than three seconds; and never more than 16 times as many. 0
	 * means 8.
	 */
	unsigned parallel;
	unsigned max_time_ms; /* for one artifact, all tries, once it is its turn; 0 means no limit */
	uint64_t max_size; /* of one artifact, in bytes; 0 means no limit */
	const char *const *links; /* for file://: see bid_source_tree_new() */
	dev_t own_device; /* of the program's own mount, from which file:// has nothing (bid_source_tree_new()); or 0 */
	bool for_all; /* everybody reads what is fetched: file:// has nothing that not all may read where it is */
	/* The rest may be NULL; the strings are copied by bid_fetch_new(). */
	const char *headers_file; /* lines of header for the servers themselves: never sent to where they redirect */
	const char *ca_file, *ca_directory; /* of certificates to trust, instead of the system's */
	const char *netrc_file; /* names and passwords, netrc(5) */
};

/*
 * Fill @config from the environment, as libdebuginfod reads it (debuginfod-client-config(7)): DEBUGINFOD_TIMEOUT, _MAXTIME,
 * _MAXSIZE, _RETRY_LIMIT and _HEADERS_FILE where they are set, our defaults otherwise; and as curl(1) does: CURL_CA_BUNDLE or
 * SSL_CERT_FILE, SSL_CERT_DIR, and NETRC, without which no netrc file is looked for. The strings are the environment's. Proxies
 * (http_proxy, https_proxy, all_proxy, no_proxy) are read by libcurl itself.
 */
void bid_fetch_config_from_environment(struct bid_fetch_config *config);

/* Must be called after the process has daemonised: it starts a thread. */
int bid_fetch_new(const struct bid_fetch_config *config, struct bid_fetch **ret_fetch);

/* Only after every source made from it was freed. @fetch may be NULL. */
void bid_fetch_free(struct bid_fetch *fetch);

/*
 * A server. @url is http:// or https://, or file:// for a bid_source_tree_new(), or without a scheme "HOST:PORT", for http://;
 * anything else is -EPROTONOSUPPORT; -EINVAL for one that is no URL at all, or not UTF-8.
 */
int bid_fetch_server_new(struct bid_fetch *fetch, const char *url, struct bid_source **ret_source);

/* Would bid_fetch_server_new() take @url? 0 or the error it would return. Needs no thread: to check an option early. */
int bid_fetch_check_url(const char *url);

/*
 * The directory of a file:// URL, for the caller to free. 0; -EPROTONOSUPPORT for any other URL, -EINVAL for one that names none,
 * -ENOMEM.
 */
int bid_fetch_url_tree(const char *url, char **ret_path);

/*
 * @url without user name and password; every message that names a URL is to have it so. It need not be a valid one. The caller
 * frees it; NULL if memory ran out.
 */
char *bid_fetch_url_shown(const char *url);

/*
 * The servers that the environment configures: DEBUGINFOD_URLS if it is set, else every *.urls file of /etc/debuginfod (@etc, if
 * not NULL, is read instead of "/etc/debuginfod"), split at white space, without doubles, trailing slashes and "ima:" tokens.
 * Returns their number and a NULL-terminated array for bid_fetch_urls_free(), or a negative errno.
 */
int bid_fetch_urls_from_environment(const char *etc, char ***ret_urls);

void bid_fetch_urls_free(char **urls);

#endif
