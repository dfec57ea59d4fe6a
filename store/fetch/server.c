// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>

#include "base/cleanup.h"
#include "fetch/network.h"
#include "fetch/url.h"

static struct bid_server *server_of(struct bid_source *source)
{
	return (struct bid_server *)source;
}

static int server_start(struct bid_source *source, const struct bid_request *request, const struct bid_receiver *receiver,
			void *user, uint64_t *ret_transfer)
{
	struct bid_server *server = server_of(source);
	struct bid_transfer *transfer;
	int r;

	r = bid_transfer_new(server, request, receiver, user, &transfer);
	if (r < 0)
		return r;
	bid_network_submit(server->fetch, transfer, ret_transfer);
	return 0;
}

static void server_cancel(struct bid_source *source, uint64_t transfer)
{
	/* zero is no transfer's number, but "all" to bid_network_cancel() */
	if (transfer)
		bid_network_cancel(server_of(source), transfer);
}

static void server_free(struct bid_source *source)
{
	struct bid_server *server = server_of(source);

	bid_network_drain(server);
	free(server->url);
	free(server->name);
	free(server);
}

static const struct bid_source_ops server_ops = {
	.start = server_start,
	.cancel = server_cancel,
	.free = server_free,
};

int bid_fetch_server_new(struct bid_fetch *fetch, const char *url, struct bid_source **ret_source)
{
	bid_auto_free char *normal = NULL, *name = NULL;
	struct bid_server *server;
	int r;

	r = bid_url_normalise(url, &normal);
	if (r < 0)
		return r;
	name = bid_url_shown(normal);
	if (!name)
		return -ENOMEM;
	server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	server->fetch = fetch;
	server->url = bid_steal(normal);
	server->name = bid_steal(name);
	server->source.ops = &server_ops;
	server->source.name = server->name;
	TAILQ_INIT(&server->waiting);
	*ret_source = &server->source;
	return 0;
}
