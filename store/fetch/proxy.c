// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "base/cleanup.h"

#define DEFAULT_PORT	   1080 /* libcurl's */
#define DEFAULT_HTTPS_PORT 443

/* A host and a port of a URL. */
struct place {
	char *scheme, *host; /* libcurl's */
	unsigned port;
};

static void place_release(struct place *place)
{
	curl_free(place->scheme);
	curl_free(place->host);
}

/* False if @url is none. One that does not say its port has port 0, or with @known the one that its scheme has. */
static bool parse(const char *url, bool known, struct place *ret_place)
{
	CURLU *parsed = curl_url();
	char *port = NULL;
	bool done = parsed &&
		    curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME) == CURLUE_OK &&
		    curl_url_get(parsed, CURLUPART_SCHEME, &ret_place->scheme, 0) == CURLUE_OK &&
		    curl_url_get(parsed, CURLUPART_HOST, &ret_place->host, 0) == CURLUE_OK;

	if (done && curl_url_get(parsed, CURLUPART_PORT, &port, known ? CURLU_DEFAULT_PORT : 0) == CURLUE_OK)
		ret_place->port = (unsigned)strtoul(port, NULL, 10);
	curl_free(port);
	curl_url_cleanup(parsed);
	return done;
}

static const char *variable(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/* Of curl(1), ENVIRONMENT. A web server sets HTTP_PROXY from a header, so that one does not count. */
static const char *proxy_for(const char *scheme)
{
	bool https = strcasecmp(scheme, "https") == 0;
	const char *proxy = variable(https ? "https_proxy" : "http_proxy");

	if (!proxy && https)
		proxy = variable("HTTPS_PROXY");
	if (!proxy)
		proxy = variable("all_proxy");
	return proxy ? proxy : variable("ALL_PROXY");
}

static bool find(const struct place *server, struct place *ret_proxy)
{
	const char *text = proxy_for(server->scheme);

	if (!text || !parse(text, false, ret_proxy))
		return false;
	if (ret_proxy->port == 0)
		ret_proxy->port = strcasecmp(ret_proxy->scheme, "https") == 0 ? DEFAULT_HTTPS_PORT : DEFAULT_PORT;
	return true;
}

static void name(const struct place *proxy, char ret_name[static BID_PROXY_MAX])
{
	snprintf(ret_name, BID_PROXY_MAX, "%s:%u", proxy->host, proxy->port);
}

bool bid_proxy_name(const char *url, char ret_name[static BID_PROXY_MAX])
{
	bid_cleanup(place_release) struct place server = { .port = 0 }, proxy = { .port = 0 };

	if (!parse(url, true, &server) || !find(&server, &proxy))
		return false;
	name(&proxy, ret_name);
	return true;
}

bool bid_proxy_asked(const char *url, unsigned port, const char *trouble, char ret_name[static BID_PROXY_MAX])
{
	bid_cleanup(place_release) struct place server = { .port = 0 }, proxy = { .port = 0 };

	if (port == 0 || !parse(url, true, &server) || !find(&server, &proxy) || proxy.port != port)
		return false;
	/* libcurl says only since 8.7 which of them it was; but in words it names the host */
	if (server.port == port && (strcasecmp(server.host, proxy.host) == 0 || !strstr(trouble, proxy.host)))
		return false;
	name(&proxy, ret_name);
	return true;
}
