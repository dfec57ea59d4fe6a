// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/servers.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/fetch.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "ctl/mounts.h"

const char *ctl_servers_why_none(const struct ctl *ctl, const struct bid_store *store, enum bid_kind kind)
{
	if (!bid_kind_fetchable(kind) && kind != BID_KIND_UNSTRIPPED)
		return kind == BID_KIND_KALLSYMS || kind == BID_KIND_VDSO
			       ? "no server has this kind - 'bidctl add --kernel' adds the running kernel's"
			       : "no server has this kind";
	/* sources and sections come from this program's servers, also below a mount */
	if (!bid_kind_has_subpath(kind) && bid_is_mount(bid_store_path(store)))
		return "the mount that covers it found none - 'bidctl get -v' shows the responses of its servers";
	if (ctl->offline)
		return "'--offline' fetches none";
	if (!bid_store_writable(store))
		return "bidctl fetches none, as the store cannot be written";
	if (!BID_HAVE_FETCH)
		return "this is built without fetching";
	return "no server is configured, or bidctl ignores each, see above - name one with '--url=URL' or DEBUGINFOD_URLS";
}

#if BID_HAVE_FETCH

/* Count the servers of the command line, or else of the environment. */
static int count_servers(const struct ctl *ctl)
{
	int n = (int)ctl->urls.n;
	char **urls;

	if (n == 0 && (n = bid_fetch_urls_from_environment(NULL, &urls)) >= 0)
		bid_fetch_urls_free(urls);
	return n;
}

static enum ctl_status add_server(struct ctl_servers *servers, const char *url)
{
	bid_auto_free char *shown = NULL;
	struct bid_server *server;
	int r = bid_fetch_server_new(servers->fetch, url, &server);

	if (r == 0)
		r = bid_broker_add_server(servers->broker, server);
	if (r == 0 || r == -EOPNOTSUPP)
		return CTL_DONE;
	shown = bid_fetch_url_shown(url);
	bid_error_about(shown ? shown : url, r, "%s: server '%s'", strerror(-r), shown ? shown : url);
	return CTL_TROUBLE;
}

static bool has_server(const struct ctl_servers *servers, const char *name)
{
	struct bid_server_stats stats;

	for (size_t i = 0; bid_broker_server_stats(servers->broker, i, &stats) == 0; i++)
		if (strcmp(stats.name, name) == 0)
			return true;
	return false;
}

struct mounted {
	struct ctl_servers *servers;
	const char *store;
	enum ctl_status status;
};

/* Add the servers of a mount of the same store by root or by this user: no other user may choose them. */
static int add_mounted(void *user, const struct ctl_mount *mount)
{
	struct mounted *mounted = user;
	json_t *state, *listed, *server;
	size_t i;

	if (mount->owner != 0 && mount->owner != geteuid())
		return 0;
	if (strcmp(mount->source, mounted->store) != 0 || ctl_mount_state(mount, &state) < 0)
		return 0;
	listed = json_is_true(json_object_get(state, "offline")) ? NULL : json_object_get(state, "servers");
	json_array_foreach(listed, i, server)
	{
		const char *name = json_string_value(json_object_get(server, "name"));
		bid_auto_free char *url = NULL;

		if (mounted->status != CTL_DONE || !name || bid_fetch_check_url(name) < 0 || has_server(mounted->servers, name))
			continue;
		if (asprintf(&url, "%s%s", json_object_get(server, "ima") ? "ima:enforcing " : "", name) < 0)
			mounted->status = CTL_TROUBLE;
		else
			mounted->status = add_server(mounted->servers, url);
	}
	json_decref(state);
	return 0;
}

/* Add the servers of the environment, and behind them those of mounts of the same store. */
static enum ctl_status add_environment(struct ctl_servers *servers, const char *store)
{
	struct mounted mounted = { .servers = servers, .store = store };
	char **urls;
	int n = bid_fetch_urls_from_environment(NULL, &urls);

	if (n < 0)
		return ctl_trouble("/etc/debuginfod", n, "read the servers");
	for (int i = 0; i < n && mounted.status == CTL_DONE; i++)
		mounted.status = add_server(servers, urls[i]);
	bid_fetch_urls_free(urls);
	ctl_each_mount(add_mounted, &mounted);
	return mounted.status;
}

bool ctl_servers_are_barred(const struct ctl *ctl, const struct bid_store *store)
{
	return !ctl->offline && !bid_store_writable(store) && !bid_is_mount(bid_store_path(store)) && count_servers(ctl) > 0;
}

enum ctl_status ctl_servers_check(const struct ctl *ctl)
{
	if (ctl->offline && ctl->urls.n > 0)
		return ctl_usage("--offline", "'--offline' and '--url' do not go together");
	for (size_t i = 0; i < ctl->urls.n; i++) {
		bid_auto_free char *shown = NULL;
		int r = bid_fetch_check_url(ctl->urls.at[i]);

		if (r == 0)
			continue;
		shown = bid_fetch_url_shown(ctl->urls.at[i]);
		return ctl_usage(shown ? shown : "", "not a server's URL: '%s': %s", shown ? shown : "",
				 r == -EPROTONOSUPPORT ? "it must begin with 'http://', 'https://' or 'file://'"
						       : "it needs a host or an absolute path, and has no query or fragment");
	}
	return CTL_DONE;
}

static enum ctl_status add_servers(struct ctl_servers *servers, const struct ctl *ctl, const struct bid_fetch_config *config,
				   const char *store)
{
	enum ctl_status status = CTL_DONE;
	int r = bid_fetch_new(config, &servers->fetch);

	if (r < 0)
		return ctl_trouble("servers", r, "start to fetch");
	if (ctl->urls.n == 0)
		return add_environment(servers, store);
	for (size_t i = 0; i < ctl->urls.n && status == CTL_DONE; i++)
		status = add_server(servers, ctl->urls.at[i]);
	return status;
}

enum ctl_status ctl_servers_init(struct ctl_servers *servers, const struct ctl *ctl, struct bid_store *store)
{
	struct bid_fetch_config config = { 0 };
	enum ctl_status status = ctl_servers_check(ctl);
	int r;

	if (status != CTL_DONE)
		return status;
	bid_fetch_config_from_environment(&config);
	config.links = (const char *const *)ctl->links;
	config.enforce = ctl->require_signed;
	r = bid_broker_new(store, &(struct bid_broker_config){ .max_size = config.max_size }, &servers->broker);
	if (r < 0)
		return ctl_trouble("servers", r, "start to fetch");
	return ctl->offline || !bid_store_writable(store) ? CTL_DONE : add_servers(servers, ctl, &config, bid_store_path(store));
}

void ctl_servers_release(struct ctl_servers *servers)
{
	bid_broker_free(servers->broker);
	bid_fetch_free(servers->fetch);
	*servers = CTL_SERVERS_NONE;
}

#else

bool ctl_servers_are_barred(const struct ctl *ctl, const struct bid_store *store)
{
	return false;
}

enum ctl_status ctl_servers_check(const struct ctl *ctl)
{
	return ctl->urls.n > 0 ? ctl_usage("--url", "this is built without fetching") : CTL_DONE;
}

enum ctl_status ctl_servers_init(struct ctl_servers *servers, const struct ctl *ctl, struct bid_store *store)
{
	enum ctl_status status = ctl_servers_check(ctl);
	int r;

	if (status != CTL_DONE)
		return status;
	r = bid_broker_new(store, &(struct bid_broker_config){ 0 }, &servers->broker);
	return r < 0 ? ctl_trouble("servers", r, "start to fetch") : CTL_DONE;
}

void ctl_servers_release(struct ctl_servers *servers)
{
	bid_broker_free(servers->broker);
	*servers = CTL_SERVERS_NONE;
}

#endif
