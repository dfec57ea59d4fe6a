// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/url.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <bid/fetch.h>
#include <curl/curl.h>

#include "base/cleanup.h"

/* RFC 3986, 3.1. Returns the length of the scheme of @url, or 0 if it begins with none. */
static size_t scheme_length(const char *url)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

	return strncmp(url + n, "://", 3) == 0 ? n : 0;
}

static int check_scheme(const char *url)
{
	size_t n = scheme_length(url);

	if (n == 0)
		return -EINVAL;
	if (n == 4 && strncasecmp(url, "http", n) == 0)
		return 0;
	if (n == 5 && strncasecmp(url, "https", n) == 0)
		return 0;
	return -EPROTONOSUPPORT;
}

int bid_fetch_check_url(const char *url)
{
	CURLU *parsed;
	CURLUcode code;
	int r;

	r = check_scheme(url);
	if (r < 0)
		return r;
	/* a path is going to be appended: behind a query or a fragment it would be none */
	if (strnlen(url, BID_URL_MAX + 1) > BID_URL_MAX || strpbrk(url, "?#"))
		return -EINVAL;

	parsed = curl_url();
	if (!parsed)
		return -ENOMEM;
	code = curl_url_set(parsed, CURLUPART_URL, url, 0);
	curl_url_cleanup(parsed);
	if (code == CURLUE_OUT_OF_MEMORY)
		return -ENOMEM;
	return code == CURLUE_OK ? 0 : -EINVAL;
}

int bid_url_normalise(const char *url, char **ret_url)
{
	size_t len;
	char *copy;
	int r;

	r = bid_fetch_check_url(url);
	if (r < 0)
		return r;
	len = strlen(url);
	while (url[len - 1] == '/')
		len--;
	copy = strndup(url, len);
	if (!copy)
		return -ENOMEM;
	*ret_url = copy;
	return 0;
}

char *bid_url_shown(const char *url)
{
	size_t scheme = scheme_length(url);
	const char *authority = scheme ? url + scheme + 3 : url;
	size_t n = strcspn(authority, "/?#");
	const char *at = memrchr(authority, '@', n);
	char *shown;

	if (!at)
		return strdup(url);
	if (asprintf(&shown, "%.*s%s", (int)(authority - url), url, at + 1) < 0)
		return NULL;
	return shown;
}

static const char *const web_names[BID_KIND_COUNT] = {
	[BID_KIND_ELF] = "executable",
	[BID_KIND_DEBUGINFO] = "debuginfo",
};

int bid_url_for_request(const char *base, const struct bid_request *request, char **ret_url)
{
	char hex[BID_ID_HEX_MAX];
	char *url;

	if ((unsigned)request->kind >= BID_KIND_COUNT || !web_names[request->kind])
		return -EOPNOTSUPP;
	if (asprintf(&url, "%s/buildid/%s/%s", base, bid_id_format(&request->id, hex), web_names[request->kind]) < 0)
		return -ENOMEM;
	*ret_url = url;
	return 0;
}
