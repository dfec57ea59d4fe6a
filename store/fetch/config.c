// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Configuration from the environment, as libdebuginfod reads it (debuginfod-client-config(7)), and the header lines of
 * DEBUGINFOD_HEADERS_FILE.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/fetch.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "fetch/network_thread.h"
#include "fetch/url.h"

#define CONNECT_MS	 5000 /* name, TCP with two lost packets, and TLS */
#define FIRST_BYTE_MS	 30000
#define FIRST_CONTACT_MS 10000 /* the default wait of a reader */
#define ANSWER_MS	 90000 /* as libdebuginfod */
#define STALL_MS	 5000
#define PARALLEL	 32 /* files that the server unpacks first take long, and others should not wait for them */
#define RETRIES		 2 /* as libdebuginfod */
#define RETRIES_MAX	 10
#define TIMEOUT_MAX_S	 3600 /* limit, because a file system must not wait for ever */
#define LIST_MAX	 (64 * 1024) /* bytes of a file of /etc/debuginfod */
#define HEADERS_FILE_MAX (64 * 1024) /* as in the message */

static const char default_etc[] = "/etc/debuginfod";

/* Read the variable @name into @ret_value. Returns false, with a warning and an unchanged @ret_value, unless it is a number. */
static bool number_from_environment(const char *name, long long *ret_value)
{
	const char *text = getenv(name);
	long long value;
	char *end;

	if (!text || !*text)
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || *end || errno) {
		bid_warning("not a number: bidfs ignores '%s=%s'", name, text);
		return false;
	}
	*ret_value = value;
	return true;
}

static const char *path_from_environment(const char *name)
{
	const char *path = getenv(name);

	return path && *path ? path : NULL;
}

static unsigned at_most(unsigned ms, unsigned most)
{
	return ms < most ? ms : most;
}

void bid_fetch_config_from_environment(struct bid_fetch_config *config)
{
	long long value;

	*config = (struct bid_fetch_config){ .retries = RETRIES };

	/*
	 * DEBUGINFOD_TIMEOUT of libdebuginfod is the time for the first 100 KiB; zero or less means no timeout. Here it limits each
	 * step: the response, and a stall of the body. It can shorten the limits of a connection and of a late response, but not
	 * lengthen them.
	 */
	if (number_from_environment("DEBUGINFOD_TIMEOUT", &value)) {
		if (value <= 0 || value > TIMEOUT_MAX_S)
			value = TIMEOUT_MAX_S;
		config->answer_ms = (unsigned)value * 1000;
		config->stall_ms = config->answer_ms;
		config->first_byte_ms = at_most(config->answer_ms, FIRST_BYTE_MS);
		config->connect_ms = at_most(config->answer_ms, CONNECT_MS);
	}
	if (number_from_environment("DEBUGINFOD_MAXTIME", &value) && value > 0)
		config->max_time_ms = (unsigned)(value < TIMEOUT_MAX_S ? value : TIMEOUT_MAX_S) * 1000;
	if (number_from_environment("DEBUGINFOD_MAXSIZE", &value) && value > 0)
		config->max_size = (uint64_t)value;
	if (number_from_environment("DEBUGINFOD_RETRY_LIMIT", &value) && value >= 0)
		config->retries = value < RETRIES_MAX ? (unsigned)value : RETRIES_MAX;
	config->headers_file = path_from_environment("DEBUGINFOD_HEADERS_FILE");

	/* curl(1) reads these, libcurl does not */
	config->ca_file = path_from_environment("CURL_CA_BUNDLE");
	if (!config->ca_file)
		config->ca_file = path_from_environment("SSL_CERT_FILE");
	config->ca_directory = path_from_environment("SSL_CERT_DIR");
	config->netrc_file = path_from_environment("NETRC");
}

void bid_fetch_apply_defaults(struct bid_fetch_config *config)
{
	if (!config->connect_ms)
		config->connect_ms = CONNECT_MS;
	if (!config->answer_ms)
		config->answer_ms = config->first_byte_ms ? config->first_byte_ms : ANSWER_MS;
	if (!config->first_byte_ms)
		config->first_byte_ms = FIRST_BYTE_MS;
	if (!config->first_contact_ms)
		config->first_contact_ms = FIRST_CONTACT_MS;
	if (config->first_contact_ms > config->first_byte_ms)
		config->first_contact_ms = config->first_byte_ms;
	if (!config->stall_ms)
		config->stall_ms = STALL_MS;
	if (!config->parallel)
		config->parallel = PARALLEL;
}

struct url_list {
	char **urls; /* NULL-terminated, or NULL */
	size_t n;
	bool enforcing; /* the policy of the URLs that follow */
};

static void url_list_release(struct url_list *list)
{
	bid_fetch_urls_free(list->urls);
}

void bid_fetch_urls_free(char **urls)
{
	if (!urls)
		return;
	for (char **url = urls; *url; url++)
		free(*url);
	free(urls);
}

static int url_list_add(struct url_list *list, const char *text)
{
	bid_auto_free char *url = NULL;
	char **larger;
	int r;

	r = bid_url_normalise(text, &url);
	if (r == -EINVAL || r == -EPROTONOSUPPORT) {
		bid_auto_free char *shown = bid_fetch_url_shown(text);

		if (!shown)
			return -ENOMEM;
		bid_warning("%s: bidfs ignores the server '%s'", r == -EINVAL ? "not a URL" : "neither http, https nor file",
			    shown);
		return 0;
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(bid_url_behind_policy(list->urls[i], NULL), url) == 0)
			return 0;

	if (list->enforcing) {
		bid_auto_free char *plain = bid_steal(url);

		if (asprintf(&url, "ima:enforcing %s", plain) < 0)
			return -ENOMEM;
	}
	larger = reallocarray(list->urls, list->n + 2, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	list->urls = larger;
	list->urls[list->n++] = bid_steal(url);
	list->urls[list->n] = NULL;
	return 0;
}

/* A policy holds for the URLs behind it. libdebuginfod ignores an unknown one, such as "ima:permissive": the last one holds. */
static int url_list_add_word(struct url_list *list, const char *word)
{
	if (strncasecmp(word, "ima:", 4) != 0)
		return url_list_add(list, word);
	if (strcasecmp(word, "ima:enforcing") == 0 || strcasecmp(word, "ima:ignore") == 0)
		list->enforcing = strcasecmp(word, "ima:enforcing") == 0;
	else
		bid_warning("not a policy for signatures: bidfs ignores '%s'", word);
	return 0;
}

/* Add every word of @text, and cut @text into pieces. A word that begins with "#" starts a comment up to the end of the line. */
static int url_list_add_text(void *user, char *text)
{
	static const char white[] = " \t\r\n\v\f";
	struct url_list *list = user;

	for (;;) {
		char *word = text + strspn(text, white);
		char *end = word + strcspn(word, white);
		bool last = *end == '\0';
		int r;

		if (*word == '\0')
			return 0;
		if (*word == '#') {
			text = word + strcspn(word, "\n");
			continue;
		}
		*end = '\0';
		r = url_list_add_word(list, word);
		if (r < 0 || last)
			return r;
		text = end + 1;
	}
}

/* Call @fn with the text of a file. Returns the result of @fn, -ENOMEM, or 0 after a warning. */
static int with_text(int dir, const char *etc, const char *name, int (*fn)(void *user, char *text), void *user)
{
	bid_auto_free char *text = NULL;
	bid_auto_fd int fd = -1;
	size_t len;
	int r;

	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	r = fd < 0 ? -errno : bid_read_file(fd, LIST_MAX, &text, &len);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || memchr(text, '\0', len)) {
		bid_warning("%s: bidfs ignores the list '%s/%s'", r < 0 ? strerror(-r) : "not a text", etc, name);
		return 0;
	}
	return fn(user, text);
}

/* Call @fn with the text of each file of @etc whose name ends in @suffix, as the profile scripts of elfutils read them. */
static int each_text(const char *etc, const char *suffix, int (*fn)(void *user, char *text), void *user)
{
	struct dirent **entries;
	bid_auto_fd int dir = -1;
	int n, r = 0;

	dir = open(etc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	n = scandirat(dir, ".", &entries, NULL, alphasort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name, *end = strrchr(name, '.');

		if (r == 0 && name[0] != '.' && end && strcmp(end, suffix) == 0)
			r = with_text(dir, etc, name, fn, user);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int bid_fetch_urls_from_environment(const char *etc, char ***ret_urls)
{
	bid_cleanup(url_list_release) struct url_list list = { 0 };
	const char *variable = getenv("DEBUGINFOD_URLS");
	int r;

	list.urls = calloc(1, sizeof(*list.urls));
	if (!list.urls)
		return -ENOMEM;
	if (variable) {
		/* an empty variable means no servers; an unset one does not */
		bid_auto_free char *text = strdup(variable);

		r = text ? url_list_add_text(&list, text) : -ENOMEM;
	} else {
		r = each_text(etc ? etc : default_etc, ".urls", url_list_add_text, &list);
	}
	if (r < 0)
		return r;
	if (list.n > INT_MAX)
		return -E2BIG;
	*ret_urls = bid_steal(list.urls);
	return (int)list.n;
}

static int add_lines(void *user, char *text)
{
	for (const char *line; (line = strsep(&text, "\n"));)
		if (*line)
			fprintf(user, "%s:", line);
	return 0;
}

char *bid_fetch_certificate_path(const char *etc)
{
	const char *variable = path_from_environment("DEBUGINFOD_IMA_CERT_PATH");
	char *path = NULL;
	size_t len = 0;
	FILE *out = variable ? NULL : open_memstream(&path, &len);

	if (variable)
		return strdup(variable);
	if (!out)
		return NULL;
	each_text(etc ? etc : default_etc, ".certpath", add_lines, out);
	if (ftell(out) == 0)
		fputs("/etc/keys/ima", out);
	if (fclose(out) == 0)
		return path;
	free(path);
	return NULL;
}

int bid_fetch_add_header(struct curl_slist **headers, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*headers, line);

	if (!longer)
		return -ENOMEM;
	*headers = longer;
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

int bid_fetch_read_headers(const char *path, struct curl_slist **ret_headers)
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
			r = bid_fetch_add_header(&headers, line);
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
