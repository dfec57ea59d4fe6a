// SPDX-License-Identifier: LGPL-2.1-or-later
#include "servers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/fetch.h"
#include "base/cleanup.h"
#include "base/log.h"

struct bid_servers {
	const struct bid_options *options; /* borrowed */
	struct bid_fetch_config config; /* borrows strings of the environment */
	char **configured; /* URLs of the environment; NULL if the options have some; owned */
	struct bid_fetch *fetch; /* owned; NULL before the start */
};

int bid_servers_check(const char *url)
{
	int r = bid_fetch_check_url(url);
	bid_auto_free char *shown = r < 0 ? bid_fetch_url_shown(url) : NULL;

	if (r == -EPROTONOSUPPORT)
		bid_error("not a server's URL: '%s': it must begin with 'http://', 'https://' or 'file://'", shown ? shown : "");
	else if (r < 0)
		bid_error("not a server's URL: '%s': it needs a host or an absolute path, and has no query or fragment",
			  shown ? shown : "");
	return r;
}

/* A look at a tree on another file system may wait for another machine. */
static void warn_of_no_tree(const char *url)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV };
	bid_auto_free char *path = NULL;
	bid_auto_fd int fd = -1;

	if (bid_fetch_url_tree(url, &path) < 0)
		return;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		bid_warning("%s: '%s': bidfs fetches nothing from '%s' until it is there", strerror(errno), path, url);
}

/* DEBUGINFOD_URLS=file://M is for other programs. The daemon would wait for itself. */
static bool is_this_mount(const char *url, const char *mountpoint)
{
	bid_auto_free char *path = NULL;
	size_t len = strlen(mountpoint);

	return bid_fetch_url_tree(url, &path) == 0 && strncmp(path, mountpoint, len) == 0 &&
	       (path[len] == '/' || path[len] == '\0');
}

/* The device of this mount under any name; 0 if unknown. Sends no request, because the mount does not answer yet. */
static dev_t own_device(const char *mountpoint)
{
	struct statx st;

	if (statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0)
		return 0;
	return makedev(st.stx_dev_major, st.stx_dev_minor);
}

static int add_server(struct bid_servers *servers, struct bid_broker *broker, const char *url)
{
	bid_auto_free char *shown = bid_fetch_url_shown(url);
	struct bid_server *server;
	int r;

	if (is_this_mount(url, servers->options->mountpoint)) {
		bid_warning("the server '%s' is this mount itself: bidfs ignores it", shown ? shown : "");
		return 0;
	}
	r = bid_fetch_server_new(servers->fetch, url, &server);
	if (r == -EOPNOTSUPP)
		return 0;
	if (r == 0)
		r = bid_broker_add_server(broker, server);
	if (r < 0)
		bid_error("%s: cannot use the server '%s'", bid_strerror(r), shown ? shown : "");
	return r;
}

/* NULL-terminated; empty without servers. */
static char **urls_of(const struct bid_servers *servers)
{
	return servers->configured ? servers->configured : servers->options->urls;
}

int bid_servers_new(const struct bid_options *options, struct bid_servers **ret_servers)
{
	struct bid_servers *servers;
	int r = 0;

	*ret_servers = NULL;
	if (options->offline)
		return 0;
	servers = calloc(1, sizeof(*servers));
	if (!servers)
		return -ENOMEM;
	servers->options = options;
	if (!options->urls)
		r = bid_fetch_urls_from_environment(NULL, &servers->configured);
	if (r < 0 || !urls_of(servers)[0]) {
		bid_servers_free(servers);
		return r < 0 ? r : 0;
	}
	bid_fetch_config_from_environment(&servers->config);
	if (options->max_size)
		servers->config.max_size = options->max_size;
	servers->config.enforce = options->require_signed;
	for (char **url = urls_of(servers); *url; url++)
		warn_of_no_tree(*url);
	*ret_servers = servers;
	return 0;
}

int bid_servers_start(struct bid_servers *servers, struct bid_broker *broker)
{
	int r;

	if (!servers)
		return 0;
	servers->config.links = (const char *const *)servers->options->links;
	servers->config.own_device = own_device(servers->options->mountpoint);
	servers->config.for_all = servers->options->allow_other;
	/* also after a failure: earlier servers live until the broker ends */
	r = bid_fetch_new(&servers->config, &servers->fetch);
	for (char **url = urls_of(servers); r >= 0 && *url; url++)
		r = add_server(servers, broker, *url);
	return r < 0 ? r : 0;
}

void bid_servers_free(struct bid_servers *servers)
{
	if (!servers)
		return;
	bid_fetch_free(servers->fetch);
	bid_fetch_urls_free(servers->configured);
	free(servers);
}

bool bid_servers_are_remote(const struct bid_servers *servers)
{
	bid_auto_free char *path = NULL;

	for (char **url = servers ? urls_of(servers) : NULL; url && *url; url++) {
		if (bid_fetch_url_tree(*url, &path) < 0)
			return true;
		free(bid_steal(path));
	}
	return false;
}

int bid_servers_each_path(const struct bid_servers *servers, int (*fn)(void *user, const char *path, bool tree), void *user)
{
	const char *files[4] = { NULL };
	bid_auto_free char *certificates = bid_fetch_certificate_path(NULL);
	char *next = certificates;
	int r = 0;

	if (!servers)
		return 0;
	if (!certificates)
		return -ENOMEM;
	files[0] = servers->config.headers_file;
	files[1] = servers->config.netrc_file;
	files[2] = servers->config.ca_file;
	files[3] = servers->config.ca_directory;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && r == 0; i++)
		r = files[i] ? fn(user, files[i], false) : 0;
	for (const char *path; r == 0 && (path = strsep(&next, ":"));) {
		bid_auto_free char *inside = NULL;

		/* the directory of a file may be read too: not the one above, which may have private keys */
		if (*path)
			r = asprintf(&inside, "%s/.", path) < 0 ? -ENOMEM : fn(user, inside, false);
	}
	for (char **url = urls_of(servers); r == 0 && *url; url++) {
		bid_auto_free char *path = NULL;

		if (bid_fetch_url_tree(*url, &path) == 0)
			r = fn(user, path, true);
	}
	return r;
}
