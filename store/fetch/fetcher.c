// SPDX-License-Identifier: LGPL-2.1-or-later
/* The fetcher of libbid: a broker with the servers of the environment, for callers that wait. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <bid/fetch.h>

#include "api/broker.h"
#include "api/fetch.h"

struct bid_fetcher {
	struct bid_fetch *fetch; /* owned */
	struct bid_broker *broker; /* owned */
};

/* One get(). The broker's thread fills it under @lock. */
struct get {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool has_ended;
	int error;
	struct bid_file file;
};

static int add_server(struct bid_fetcher *fetcher, const char *url)
{
	struct bid_server *server;
	int r = bid_fetch_server_new(fetcher->fetch, url, &server);

	if (r == -EOPNOTSUPP)
		return 0;
	return r < 0 ? r : bid_broker_add_server(fetcher->broker, server);
}

static int add_servers(struct bid_fetcher *fetcher)
{
	char **urls;
	int n = bid_fetch_urls_from_environment(NULL, &urls), r = 0;

	if (n < 0)
		return n;
	for (int i = 0; i < n && r == 0; i++)
		r = add_server(fetcher, urls[i]);
	bid_fetch_urls_free(urls);
	return r;
}

int bid_fetcher_new(struct bid_store *store, unsigned wait_ms, struct bid_fetcher **ret_fetcher)
{
	struct bid_fetcher *fetcher;
	struct bid_fetch_config config = { 0 };
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	fetcher = calloc(1, sizeof(*fetcher));
	if (!fetcher)
		return -ENOMEM;
	bid_fetch_config_from_environment(&config);
	r = bid_broker_new(store, &(struct bid_broker_config){ .wait_ms = wait_ms, .max_size = config.max_size }, &fetcher->broker);
	if (r == 0)
		r = bid_fetch_new(&config, &fetcher->fetch);
	if (r == 0)
		r = add_servers(fetcher);
	if (r < 0) {
		bid_fetcher_free(fetcher);
		return r;
	}
	*ret_fetcher = fetcher;
	return 0;
}

void bid_fetcher_free(struct bid_fetcher *fetcher)
{
	if (!fetcher)
		return;
	bid_broker_free(fetcher->broker);
	bid_fetch_free(fetcher->fetch);
	free(fetcher);
}

/* bid_broker_fn */
static void end_get(void *user, const struct bid_result *result)
{
	struct get *get = user;

	pthread_mutex_lock(&get->lock);
	get->error = result->error;
	if (result->error == 0) {
		get->file = *result->file;
		result->file->fd = -1;
	}
	get->has_ended = true;
	/* under the lock: the waiter destroys both as soon as it gets the lock */
	pthread_cond_signal(&get->ended);
	pthread_mutex_unlock(&get->lock);
}

int bid_fetcher_get(struct bid_fetcher *fetcher, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	struct get get = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };
	uint64_t waiter_id;
	int r = bid_broker_look_up(fetcher->broker, artifact, ret_file, NULL);

	if (r != -EINPROGRESS)
		return r;
	r = bid_broker_new_waiter(fetcher->broker, end_get, &get, &waiter_id);
	if (r < 0)
		return r;
	bid_broker_fetch(fetcher->broker, waiter_id, artifact);
	pthread_mutex_lock(&get.lock);
	while (!get.has_ended)
		pthread_cond_wait(&get.ended, &get.lock);
	pthread_mutex_unlock(&get.lock);
	pthread_cond_destroy(&get.ended);
	pthread_mutex_destroy(&get.lock);
	if (get.error == 0)
		*ret_file = get.file;
	return get.error;
}
