/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Network thread of a fetcher. It owns the CURLM and all CURLs, and calls all receivers. Other threads, by the functions of a
 * server, queue transfers, set orders and wake it. curl_multi_wakeup() is the only function of libcurl that they call.
 *
 * bid_fetch_new()		starts the thread
 * bid_fetch_server_new()	makes a server
 * bid_fetch_free()		after the last server
 *
 * Locking: fetch->lock guards the fields marked so. No receiver is called under the lock.
 */
#ifndef BID_FETCH_NETWORK_THREAD_H
#define BID_FETCH_NETWORK_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "fetch/http_server.h"
#include "fetch/transfer.h"

struct bid_fetch {
	struct bid_fetch_config config; /* with defaults; constant; its last strings are of bid_fetch_new() alone */
	CURL *template; /* for copies, with the options of all transfers; constant */
	struct curl_slist *secrets; /* lines of config.headers_file; constant */
	struct bid_signers *signers; /* NULL before the first server with ima:enforcing; owned */
	CURLM *multi; /* for the network thread, except curl_multi_wakeup() */
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t drained; /* a server's `live` became 0 */
	struct bid_transfer_list orders; /* transfers with an order; under the lock */
	struct bid_transfer_list live; /* all, in the order of start(); under the lock */
	atomic_bool stopping;

	struct bid_transfer_list active; /* with a request, or between two requests; of the network thread */
	struct bid_timers timers; /* deadlines of transfers, and alarms of servers; of the network thread */
	unsigned seed; /* seed of the jitter; for the network thread */
};

/* Return times and limits. */
static inline const struct bid_fetch_config *bid_transfer_config(const struct bid_transfer *transfer)
{
	return &transfer->server->fetch->config;
}

/* Set the deadline of the state to @at, or to the end of the time for all requests if earlier. */
static inline void bid_transfer_set_deadline(struct bid_transfer *transfer, int64_t at)
{
	bid_timer_arm(&transfer->server->fetch->timers, &transfer->deadline, at < transfer->ends_at ? at : transfer->ends_at);
}

#define BID_SLOWEST 1024L /* bytes of a body a second */

/* Returns the time below BID_SLOWEST that ends a body, in whole seconds for CURLOPT_LOW_SPEED_TIME. */
static inline long bid_slow_s(const struct bid_fetch_config *config)
{
	return (config->first_byte_ms + 999L) / 1000;
}

/* config.c */

/* Set the times of @config that are 0, and `parallel`. */
void bid_fetch_apply_defaults(struct bid_fetch_config *config);

/*
 * Read the header lines of the file at @path (may be NULL). Ignores a file that is unreadable or writable for others, with a
 * warning. Returns 0 or -ENOMEM.
 */
int bid_fetch_read_headers(const char *path, struct curl_slist **ret_headers);

/* Append @line to @headers. Returns 0 or -ENOMEM. */
int bid_fetch_add_header(struct curl_slist **headers, const char *line);

#endif
