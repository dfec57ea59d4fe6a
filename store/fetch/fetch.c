// SPDX-License-Identifier: LGPL-2.1-or-later
/* Start and end of a fetcher. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api/signature.h"
#include "base/clock.h"
#include "base/thread.h"
#include "fetch/headers.h"
#include "fetch/network.h"

#define CONNECT_MS	 5000 /* name, TCP with two lost packets, and TLS */
#define FIRST_BYTE_MS	 30000
#define FIRST_CONTACT_MS 10000 /* the default wait of a reader */
#define ANSWER_MS	 90000 /* as libdebuginfod */
#define STALL_MS	 5000
#define PARALLEL	 8
#define IDLE_CONNECTIONS 16L

static void apply_defaults(struct bid_fetch_config *config)
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

static int copy_string(const char **string)
{
	if (!*string)
		return 0;
	*string = strdup(*string);
	return *string ? 0 : -ENOMEM;
}

/* Copy @config and its strings. After a failure release_fetch() frees the finished copies. */
static int copy_config(struct bid_fetch *fetch, const struct bid_fetch_config *config)
{
	const char *strings[] = { config->headers_file, config->ca_file, config->ca_directory, config->netrc_file };
	int r = 0;

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (copy_string(&strings[i]) < 0) {
			strings[i] = NULL;
			r = -ENOMEM;
		}
	fetch->config = *config;
	fetch->config.headers_file = strings[0];
	fetch->config.ca_file = strings[1];
	fetch->config.ca_directory = strings[2];
	fetch->config.netrc_file = strings[3];
	apply_defaults(&fetch->config);
	return r;
}

static void release_fetch(struct bid_fetch *fetch)
{
	curl_multi_cleanup(fetch->multi);
	curl_slist_free_all(fetch->secrets);
	bid_signers_free(fetch->signers);
	pthread_cond_destroy(&fetch->drained);
	pthread_mutex_destroy(&fetch->lock);
	free((char *)fetch->config.headers_file);
	free((char *)fetch->config.ca_file);
	free((char *)fetch->config.ca_directory);
	free((char *)fetch->config.netrc_file);
	free(fetch);
	curl_global_cleanup();
}

static int start_fetch(struct bid_fetch *fetch)
{
	int r;

	r = bid_headers_read(fetch->config.headers_file, &fetch->secrets);
	if (r < 0)
		return r;
	fetch->multi = curl_multi_init();
	if (!fetch->multi)
		return -ENOMEM;
	curl_multi_setopt(fetch->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(fetch->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
	return bid_thread_start(&fetch->thread, "bid-network", bid_network_main, fetch);
}

int bid_fetch_new(const struct bid_fetch_config *config, struct bid_fetch **ret_fetch)
{
	struct bid_fetch *fetch;
	int r;

	/* libcurl counts the calls, and locks since 7.84 */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	fetch = calloc(1, sizeof(*fetch));
	if (!fetch) {
		curl_global_cleanup();
		return -ENOMEM;
	}
	fetch->seed = (unsigned)bid_clock_ms() ^ (unsigned)getpid();
	pthread_mutex_init(&fetch->lock, NULL);
	pthread_cond_init(&fetch->drained, NULL);
	TAILQ_INIT(&fetch->arrivals);
	TAILQ_INIT(&fetch->live);
	TAILQ_INIT(&fetch->active);

	r = copy_config(fetch, config);
	if (r == 0)
		r = start_fetch(fetch);
	if (r < 0) {
		release_fetch(fetch);
		return r;
	}
	*ret_fetch = fetch;
	return 0;
}

void bid_fetch_free(struct bid_fetch *fetch)
{
	if (!fetch)
		return;
	pthread_mutex_lock(&fetch->lock);
	fetch->stopping = true;
	pthread_mutex_unlock(&fetch->lock);
	curl_multi_wakeup(fetch->multi);
	pthread_join(fetch->thread, NULL);
	release_fetch(fetch);
}
