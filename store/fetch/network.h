/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts behind "api/fetch.h". One thread, the network thread, owns the CURLM and every CURL and makes every call of a receiver.
 * Other threads append transfers, mark them as cancelled and wake it; they never call anything else of libcurl that has state.
 */
#ifndef BID_FETCH_NETWORK_H
#define BID_FETCH_NETWORK_H

#include <pthread.h>

#include "fetch/server.h"
#include "fetch/transfer.h"

struct bid_fetch {
	struct bid_fetch_config config; /* with the defaults filled in; constant. Its strings are owned */
	struct curl_slist *secrets; /* the lines of config.headers_file; constant */
	CURLM *multi; /* of the network thread, but for curl_multi_wakeup() */
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t settled; /* a server's `live` became 0 */
	struct bid_transfer_list arrivals; /* started, not yet seen by the network thread; under the lock */
	struct bid_transfer_list live; /* all, in the order of start(); under the lock */
	uint64_t last_number; /* under the lock */
	bool ordered; /* some transfer has an order; under the lock */
	bool stopping; /* under the lock */

	struct bid_transfer_list active; /* those with a request, or between two; of the network thread */
	struct bid_server_list alarmed; /* those with an alarm; of the network thread */
	unsigned seed; /* of the jitter; of the network thread */
	int64_t held_at; /* when a receiver kept the network thread for long, last; of that thread */
};

/* The times and limits. */
static inline const struct bid_fetch_config *bid_transfer_config(const struct bid_transfer *transfer)
{
	return &transfer->server->fetch->config;
}

#define BID_SLOWEST 1024L /* bytes of a body a second, on average over bid_slow_s() */

/* CURLOPT_LOW_SPEED_TIME is in whole seconds. */
static inline long bid_slow_s(const struct bid_fetch_config *config)
{
	return (config->first_byte_ms + 999L) / 1000;
}

/* Was @transfer cancelled, and has its done() returned? */
static inline bool bid_transfer_is_detached(const struct bid_transfer *transfer)
{
	return transfer->server->detached == transfer;
}

/* The state ends @at, or when the time for all tries is over. */
static inline void bid_transfer_set_deadline(struct bid_transfer *transfer, int64_t at)
{
	transfer->deadline = at < transfer->ends_at ? at : transfer->ends_at;
}

/* The body of the network thread; @fetch is a struct bid_fetch. Returns when it is stopping. */
void *bid_network_main(void *fetch);

/* Hand @transfer over to the network thread. Sets its number, and @ret_number, before anything of the receiver can be called. */
void bid_network_submit(struct bid_fetch *fetch, struct bid_transfer *transfer, uint64_t *ret_number);

/* Order @server's transfer of that @number, or all of them if it is 0. */
void bid_network_order(struct bid_server *server, uint64_t number, enum bid_transfer_order order);

/* Cancel all of @server and wait until each done() has returned. Not on the network thread, which would wait for it. */
void bid_network_drain(struct bid_server *server);

#endif
