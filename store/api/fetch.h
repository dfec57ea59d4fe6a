/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Servers with debuginfod's web API (debuginfod(8), "WEBAPI") over HTTP. All servers of one struct bid_fetch share a network thread
 * and its connections.
 */
#ifndef BID_API_FETCH_H
#define BID_API_FETCH_H

#include <sys/types.h>

#include "api/server.h"

/* Text of a response to an absent artifact by a web server that may be no debuginfod: that answers in plain text. */
#define BID_FETCH_WEB_PAGE "HTTP 404 with a web page"

struct bid_fetch;

struct bid_fetch_config {
	unsigned connect_ms; /* to be connected, TLS included; 0 means 5000 */
	/* from the request to the first byte, in ms */
	unsigned first_byte_ms; /* then the server has a failure, unless it responds to other requests; 0 means 30000 */
	unsigned answer_ms; /* then the request ends; 0 means first_byte_ms, or 90000 if that is 0 too */
	unsigned first_contact_ms; /* as first_byte_ms, of a server without any response so far, if shorter; 0 means 10000 */
	unsigned stall_ms; /* without any byte in the middle of a body; 0 means 5000 */
	unsigned retries; /* after a transport error or a 5xx, with jittered back-off */
	unsigned parallel; /* transfers of a server; 0 means 32 */
	unsigned max_time_ms; /* for one artifact with all attempts, without the time in the queue; 0 means no limit */
	uint64_t max_size; /* the receiver's limit for one artifact, to tell the server; 0 means no limit */
	const char *const *links; /* where links of file:// trees may lead, as for bid_store_allow_links(), or NULL; borrowed */
	dev_t own_device; /* device of the program's own mount, or 0: it would wait for itself, so file:// serves nothing from it */
	bool for_all; /* downloads are public: file:// serves only files that all users may read */
	bool enforce; /* treat each server as one with "ima:enforcing" */
	/* The rest may be NULL; bid_fetch_new() alone uses the strings. */
	const char *headers_file; /* header lines for the servers; never sent to the target of a redirection */
	const char *ca_file, *ca_directory; /* trusted certificates, instead of the system's */
	const char *netrc_file; /* names and passwords, netrc(5) */
};

/*
 * Fill @config from the environment. As libdebuginfod (debuginfod-client-config(7)), it reads DEBUGINFOD_TIMEOUT, _MAXTIME,
 * _MAXSIZE, _RETRY_LIMIT and _HEADERS_FILE, with our own defaults. As curl(1), it reads CURL_CA_BUNDLE or SSL_CERT_FILE,
 * SSL_CERT_DIR, and NETRC; without NETRC no netrc file is used. The environment owns the strings. libcurl itself reads the proxies
 * (http_proxy, https_proxy, all_proxy, no_proxy).
 */
void bid_fetch_config_from_environment(struct bid_fetch_config *config);

/* Start the network thread: call it after daemonising. */
int bid_fetch_new(const struct bid_fetch_config *config, struct bid_fetch **ret_fetch);

/* Free @fetch, which may be NULL, after all servers made from it. */
void bid_fetch_free(struct bid_fetch *fetch);

/*
 * A server. @url is http:// or https://, or file:// for a tree of files by build-id, or without a scheme "HOST:PORT", for http://;
 * anything else is -EPROTONOSUPPORT; -EINVAL for one that is no URL at all, or not UTF-8. "ima:enforcing URL" accepts only files
 * with a signature ("api/signature.h"); "ima:ignore URL" is URL. Returns -EOPNOTSUPP, after a warning, for a server whose
 * signatures cannot be checked: the caller continues without it.
 */
int bid_fetch_server_new(struct bid_fetch *fetch, const char *url, struct bid_server **ret_server);

/* Check @url for an option, without a thread. Returns 0, or the error of bid_fetch_server_new(). */
int bid_fetch_check_url(const char *url);

/*
 * Return the directory of a file:// URL; the caller frees it. Returns 0, -EPROTONOSUPPORT for any other URL, -EINVAL for a URL
 * without a directory, or -ENOMEM.
 */
int bid_fetch_url_tree(const char *url, char **ret_path);

/*
 * Return the URL in @text without policy, user name and password, as each message must show it. @text may be invalid. The caller
 * frees the result; NULL without memory.
 */
char *bid_fetch_url_shown(const char *text);

/*
 * List the servers of the environment: DEBUGINFOD_URLS if it is set, else every *.urls file of /etc/debuginfod. @etc, unless NULL,
 * replaces "/etc/debuginfod". Splits at white space; drops duplicates and trailing slashes. "ima:enforcing" holds for the URLs up
 * to "ima:ignore", and stands before each of these in the result. Returns the number and a NULL-terminated array for
 * bid_fetch_urls_free(), or a negative errno.
 */
int bid_fetch_urls_from_environment(const char *etc, char ***ret_urls);

void bid_fetch_urls_free(char **urls);

/*
 * List the directories with certificates for "ima:enforcing", separated by colons: DEBUGINFOD_IMA_CERT_PATH, else the lines of
 * every *.certpath file of /etc/debuginfod, else /etc/keys/ima. @etc is as above. The caller frees the result; NULL without memory.
 */
char *bid_fetch_certificate_path(const char *etc);

#endif
