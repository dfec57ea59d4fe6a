// SPDX-License-Identifier: LGPL-2.1-or-later
#include "servers.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <bid/error.h>
#include <bid/fetch.h>

#include "base/cleanup.h"
#include "base/log.h"

int bid_servers_check(const char *url)
{
	int r = bid_fetch_check_url(url);
	bid_auto_free char *shown = r < 0 ? bid_fetch_url_shown(url) : NULL;

	if (r < 0)
		bid_error("not a server's URL: '%s': one that begins with 'http://', 'https://' or 'file://' is wanted",
			  shown ? shown : "");
	return r;
}

/* DEBUGINFOD_URLS=file://M is how other programs are told of this very mount: to ask ourselves would be to wait for ourselves. */
static bool is_this_mount(const char *url, const char *mountpoint)
{
	static const char scheme[] = "file://", host[] = "localhost";
	size_t len = strlen(mountpoint);

	if (strncasecmp(url, scheme, strlen(scheme)) != 0)
		return false;
	url += strlen(scheme);
	if (strncasecmp(url, host, strlen(host)) == 0)
		url += strlen(host);
	return strncmp(url, mountpoint, len) == 0 && (url[len] == '/' || url[len] == '\0');
}

/* The device of this mount, by any name of it. Nobody answers for the mount yet, so it is not asked; 0 if it cannot be told. */
static dev_t own_device(const char *mountpoint)
{
	struct statx st;

	if (statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0)
		return 0;
	return makedev(st.stx_dev_major, st.stx_dev_minor);
}

static int add(struct bid_broker *broker, struct bid_fetch *fetch, const struct bid_options *options, const char *url)
{
	bid_auto_free char *shown = bid_fetch_url_shown(url);
	struct bid_source *source;
	int r;

	if (is_this_mount(url, options->mountpoint)) {
		bid_warning("this mount itself, server ignored: '%s'", shown ? shown : "");
		return 0;
	}
	r = bid_fetch_server_new(fetch, url, &source);
	if (r == 0) {
		r = bid_broker_add_source(broker, source);
		if (r < 0)
			source->ops->free(source);
	}
	if (r < 0)
		bid_error("%s: cannot use the server '%s'", bid_strerror(r), shown ? shown : "");
	return r;
}

int bid_servers_add(struct bid_broker *broker, const struct bid_options *options, struct bid_servers **ret_servers)
{
	struct bid_fetch_config config;
	struct bid_fetch *fetch = NULL;
	char **configured = NULL, **urls = options->urls;
	int r = 0;

	if (!options->offline && !urls) {
		r = bid_fetch_urls_from_environment(NULL, &configured);
		urls = configured;
	}
	if (!options->offline && r >= 0 && urls && *urls) {
		bid_fetch_config_from_environment(&config);
		if (options->max_size)
			config.max_size = options->max_size;
		config.own_device = own_device(options->mountpoint);
		r = bid_fetch_new(&config, &fetch);
		for (; r >= 0 && *urls; urls++)
			r = add(broker, fetch, options, *urls);
	}
	bid_fetch_urls_free(configured);
	/* kept even after a failure: sources made before it live until the broker goes */
	*ret_servers = (struct bid_servers *)fetch;
	return r < 0 ? r : 0;
}

void bid_servers_free(struct bid_servers *servers)
{
	bid_fetch_free((struct bid_fetch *)servers);
}
