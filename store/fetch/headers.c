// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/headers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "fetch/network.h"
#include "fetch/url.h"

#define HEADERS_FILE_MAX (64 * 1024) /* as in the message */

static int append_line(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

/* RFC 9110, 5.1 and 5.5: a token, a colon, and no control character but tabs. */
static bool is_header(const char *line)
{
	size_t name = strspn(line, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

	if (name == 0 || line[name] != ':')
		return false;
	for (const char *c = line + name; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\t') || *c == '\177')
			return false;
	return true;
}

/* Returns the reason against the file, and the remedy; or NULL. */
static const char *refusal_of(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is no regular file - put the headers into one";
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return "another user owns it - 'chown' it, or copy it to a file of your own";
	if (st->st_mode & S_IWOTH)
		return "other users may write to it - 'chmod o-w' it";
	return NULL;
}

/* Returns 0, also without a text after a warning, or -ENOMEM. */
static int read_text(const char *path, char **ret_text)
{
	bid_auto_free char *text = NULL;
	bid_auto_fd int fd = -1;
	const char *why = NULL;
	struct stat st;
	size_t len = 0;
	int r;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0)
		why = refusal_of(&st);
	if (r == 0 && !why)
		r = bid_read_file(fd, HEADERS_FILE_MAX, &text, &len);
	if (r == -ENOMEM)
		return r;
	if (r == -EFBIG)
		why = "it is larger than 64 KiB - shorten it";
	else if (r == 0 && !why && memchr(text, '\0', len))
		why = "it is no text - write one header as 'Name: value' in each line";
	else if (r < 0)
		why = strerror(-r);
	if (why) {
		bid_warning("bidfs sends no headers from '%s': %s", path, why);
		return 0;
	}
	if (st.st_mode & (S_IRGRP | S_IROTH))
		bid_warning("other users can read the headers for servers in '%s' - 'chmod go-r' it", path);
	*ret_text = bid_steal(text);
	return 0;
}

int bid_headers_read(const char *path, struct curl_slist **ret_headers)
{
	bid_auto_free char *text = NULL;
	struct curl_slist *headers = NULL;
	unsigned number = 0;
	char *next, *line;
	int r;

	r = path ? read_text(path, &text) : 0;
	for (next = text; r == 0 && (line = strsep(&next, "\n"));) {
		line[strcspn(line, "\r")] = '\0';
		number++;
		if (*line == '\0')
			continue;
		if (is_header(line))
			r = append_line(&headers, line);
		else
			/* no text of the line, which may be secret */
			bid_warning("not a header: bidfs ignores '%s:%u' - write it as 'Name: value'", path, number);
	}
	if (r == -ENOMEM) {
		curl_slist_free_all(headers);
		return r;
	}
	*ret_headers = headers;
	return 0;
}

static int make_headers(const struct bid_transfer *transfer, bool home, struct curl_slist **ret_headers)
{
	const struct curl_slist *secret = home ? transfer->server->fetch->secrets : NULL;
	uint64_t max_size = bid_transfer_config(transfer)->max_size;
	char line[BID_RESPONSE_ETAG_MAX + 32];
	struct curl_slist *headers = NULL;
	int r = append_line(&headers, "Accept-Encoding:");

	if (r == 0 && max_size) {
		snprintf(line, sizeof(line), "X-DEBUGINFOD-MAXSIZE: %" PRIu64, max_size);
		r = append_line(&headers, line);
	}
	if (r == 0 && transfer->resume.offset) {
		snprintf(line, sizeof(line), "If-Range: %s", transfer->resume.etag);
		r = append_line(&headers, line);
	}
	for (; r == 0 && secret; secret = secret->next)
		r = append_line(&headers, secret->data);
	if (r < 0) {
		curl_slist_free_all(headers);
		return r;
	}
	*ret_headers = headers;
	return 0;
}

int bid_headers_set(struct bid_transfer *transfer)
{
	struct curl_slist *headers = NULL;
	char *url = NULL;
	int r;

	if (transfer->hops > 0)
		curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &url);
	r = make_headers(transfer, !url || bid_url_same_server(transfer->url, url), &headers);
	if (r < 0)
		return r;
	if (curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, headers) != CURLE_OK)
		r = -ENOMEM;
	/* libcurl does not copy the list */
	curl_slist_free_all(transfer->headers);
	transfer->headers = headers;
	return r;
}
