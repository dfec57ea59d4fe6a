// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "api/fetch.h"
#include "base/cleanup.h"
#include "base/text.h"

/* Returns the length of the scheme (RFC 3986, 3.1) of @url, or 0 without one. */
static size_t scheme_length(const char *url)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

	return strncmp(url + n, "://", 3) == 0 ? n : 0;
}

/* RFC 3986, 2.3, and "/". */
static bool is_plain(unsigned char byte)
{
	return strchr("-._~/", byte) || (byte < 0x80 && isalnum(byte));
}

static bool is_no_blank(unsigned char byte)
{
	return byte != ' ';
}

/* Returns @text, with each byte encoded, except where @stays returns true; NULL without memory. */
static char *encode_text(const char *text, bool (*stays)(unsigned char byte))
{
	static const char digits[] = "0123456789ABCDEF";
	char *encoded = malloc(3 * strlen(text) + 1), *to = encoded;

	if (!encoded)
		return NULL;
	for (size_t i = 0; text[i]; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (stays(byte)) {
			*to++ = text[i];
		} else {
			*to++ = '%';
			*to++ = digits[byte >> 4];
			*to++ = digits[byte & 15];
		}
	}
	*to = '\0';
	return encoded;
}

const char *bid_url_behind_policy(const char *text, bool *ret_enforcing)
{
	static const char enforcing[] = "ima:enforcing ", ignore[] = "ima:ignore ";
	bool is = strncasecmp(text, enforcing, strlen(enforcing)) == 0;

	if (ret_enforcing)
		*ret_enforcing = is;
	if (is || strncasecmp(text, ignore, strlen(ignore)) == 0)
		text += is ? strlen(enforcing) : strlen(ignore);
	return text;
}

bool bid_url_is_tree(const char *url)
{
	return strncasecmp(url, "file://", 7) == 0;
}

/* Parse @url. One without a scheme gets "http://", as from libdebuginfod. A path may have blanks. Returns 0, -EINVAL or -ENOMEM. */
static int parse_url(const char *url, CURLU **ret_parsed)
{
	unsigned flags = CURLU_PATH_AS_IS | CURLU_NON_SUPPORT_SCHEME;
	CURLU *parsed = curl_url();
	CURLUcode code = CURLUE_OUT_OF_MEMORY;

	flags |= bid_url_is_tree(url) ? CURLU_ALLOW_SPACE : CURLU_GUESS_SCHEME;
	if (parsed)
		code = curl_url_set(parsed, CURLUPART_URL, url, flags);
	if (code == CURLUE_OK) {
		*ret_parsed = parsed;
		return 0;
	}
	curl_url_cleanup(parsed);
	return code == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
}

int bid_url_tree_path(const char *url, char **ret_path)
{
	CURLU *parsed;
	char *path = NULL;
	int r = parse_url(url, &parsed);

	if (r < 0)
		return r;
	r = -EINVAL;
	if (curl_url_get(parsed, CURLUPART_PATH, &path, CURLU_URLDECODE) == CURLUE_OK && path[0] == '/' && path[1]) {
		*ret_path = strdup(path);
		r = *ret_path ? 0 : -ENOMEM;
	}
	curl_free(path);
	curl_url_cleanup(parsed);
	return r;
}

int bid_fetch_url_tree(const char *url, char **ret_path)
{
	url = bid_url_behind_policy(url, NULL);
	return bid_url_is_tree(url) ? bid_url_tree_path(url, ret_path) : -EPROTONOSUPPORT;
}

/* Is @url UTF-8, as JSON and metrics need? Returns 0, -EINVAL or -ENOMEM. */
static int check_text(const char *url)
{
	bid_auto_free char *text = bid_utf8(url);

	if (!text)
		return -ENOMEM;
	return strcmp(text, url) == 0 ? 0 : -EINVAL;
}

/* Returns 0 for a scheme of servers, and the path of a directory; or -EPROTONOSUPPORT or -EINVAL. */
static int check_parts(CURLU *parsed, bool tree)
{
	char *scheme = NULL, *path = NULL;
	int r = -EPROTONOSUPPORT;

	if (curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    curl_url_get(parsed, CURLUPART_PATH, &path, 0) == CURLUE_OK) {
		if (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0)
			r = 0;
		else if (strcmp(scheme, "file") == 0)
			/* bid_url_is_tree() does not know "file:/srv" */
			r = tree && path[0] && path[1] ? 0 : -EINVAL;
	}
	curl_free(scheme);
	curl_free(path);
	return r;
}

int bid_url_normalise(const char *url, char **ret_url)
{
	bool tree = bid_url_is_tree(url);
	char *text = NULL, *normal = NULL;
	CURLU *parsed;
	size_t len;
	int r;

	/* requests append a path, which cannot follow a query or a fragment */
	if (strnlen(url, BID_URL_MAX + 1) > BID_URL_MAX || strpbrk(url, "?#"))
		return -EINVAL;
	r = check_text(url);
	if (r == 0)
		r = parse_url(url, &parsed);
	if (r < 0)
		return r;
	r = check_parts(parsed, tree);
	if (r == 0) {
		if (curl_url_get(parsed, CURLUPART_URL, &text, 0) == CURLUE_OK)
			normal = encode_text(text, is_no_blank);
		r = normal ? 0 : -ENOMEM;
	}
	curl_free(text);
	curl_url_cleanup(parsed);
	if (r < 0)
		return r;
	for (len = strlen(normal); normal[len - 1] == '/'; len--)
		normal[len - 1] = '\0';
	*ret_url = normal;
	return 0;
}

int bid_fetch_check_url(const char *url)
{
	bid_auto_free char *normal = NULL;

	return bid_url_normalise(bid_url_behind_policy(url, NULL), &normal);
}

char *bid_fetch_url_shown(const char *text)
{
	const char *url = bid_url_behind_policy(text, NULL);
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

static const char *const web_names[BID_KIND_END] = {
	[BID_KIND_ELF] = "executable",
	[BID_KIND_DEBUGINFO] = "debuginfo",
	[BID_KIND_SOURCE] = "source",
	[BID_KIND_SECTION] = "section",
};

int bid_url_for_request(const char *base, const struct bid_artifact *artifact, char **ret_url)
{
	char hex[BID_ID_HEX_MAX];
	bid_auto_free char *subpath = NULL;
	char *url;

	if ((unsigned)artifact->kind >= BID_KIND_END || !web_names[artifact->kind])
		return -EOPNOTSUPP;
	if (bid_kind_has_subpath(artifact->kind) != (artifact->subpath != NULL))
		return -EINVAL;
	/* see debuginfod(8) */
	subpath = encode_text(bid_subpath_text(artifact->subpath), is_plain);
	if (!subpath)
		return -ENOMEM;
	/* the path of a source begins with its slash */
	if (asprintf(&url, "%s/buildid/%s/%s%s%s", base, bid_id_format(&artifact->id, hex), web_names[artifact->kind],
		     artifact->kind == BID_KIND_SECTION ? "/" : "", subpath) < 0)
		return -ENOMEM;
	*ret_url = url;
	return 0;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
	char *one = NULL, *other = NULL;
	bool same;

	same = curl_url_get(a, part, &one, CURLU_DEFAULT_PORT) == CURLUE_OK &&
	       curl_url_get(b, part, &other, CURLU_DEFAULT_PORT) == CURLUE_OK && strcasecmp(one, other) == 0;
	curl_free(one);
	curl_free(other);
	return same;
}

bool bid_url_same_server(const char *one, const char *other)
{
	CURLU *a = NULL, *b = NULL;
	bool same = parse_url(one, &a) == 0 && parse_url(other, &b) == 0 && same_part(a, b, CURLUPART_SCHEME) &&
		    same_part(a, b, CURLUPART_HOST) && same_part(a, b, CURLUPART_PORT);

	curl_url_cleanup(a);
	curl_url_cleanup(b);
	return same;
}
