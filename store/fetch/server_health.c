// SPDX-License-Identifier: LGPL-2.1-or-later
/* The circuit breaker and the latency of an HTTP server. */
#include <curl/curl.h>

#include "fetch/http_server.h"
#include "fetch/network_thread.h"

bool bid_http_server_refuses(struct bid_http_server *server, struct bid_transfer *transfer, int64_t now)
{
	const struct bid_breaker *breaker = &server->breaker;
	struct bid_transfer_end *end = &transfer->end;
	bool refused;

	pthread_mutex_lock(&server->fetch->lock);
	refused = bid_breaker_refuses(breaker, now);
	if (refused) {
		*end = (struct bid_transfer_end){ .outcome = BID_OUTCOME_UNAVAILABLE };
		bid_breaker_describe(breaker, end->text, sizeof(end->text));
	}
	pthread_mutex_unlock(&server->fetch->lock);
	return refused;
}

void bid_http_server_note_start(struct bid_http_server *server, struct bid_transfer *transfer, int64_t now)
{
	pthread_mutex_lock(&server->fetch->lock);
	bid_breaker_admits(&server->breaker, now, &transfer->trial);
	pthread_mutex_unlock(&server->fetch->lock);
}

static const char *protocol_of(const struct bid_transfer *transfer)
{
	static const char *const names[] = {
		[CURL_HTTP_VERSION_1_0] = "HTTP/1.0",
		[CURL_HTTP_VERSION_1_1] = "HTTP/1.1",
		[CURL_HTTP_VERSION_2_0] = "HTTP/2",
		[CURL_HTTP_VERSION_3] = "HTTP/3",
	};
	long version = CURL_HTTP_VERSION_NONE;

	curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_VERSION, &version);
	return (unsigned long)version < sizeof(names) / sizeof(names[0]) ? names[version] : NULL;
}

void bid_http_server_note_response(struct bid_http_server *server, struct bid_transfer *transfer, int64_t now)
{
	bool well = !bid_response_is_server_error(&transfer->response);
	int64_t ms = now - transfer->sent_at;
	unsigned sample = ms < 1 ? 1 : ms > 3600 * 1000 ? 3600 * 1000 : (unsigned)ms;

	pthread_mutex_lock(&server->fetch->lock);
	server->latency_ms = server->latency_ms ? (7 * server->latency_ms + sample + 4) / 8 : sample;
	server->protocol = server->tree ? NULL : protocol_of(transfer);
	/* the late response has come: other requests need not wait for its body */
	if (well && transfer->state == BID_TRANSFER_LATE)
		bid_breaker_note(&server->breaker, now, false, BID_HEALTH_HEALTHY, 0, "");
	if (well && transfer->trial) {
		bid_breaker_answered(&server->breaker);
		transfer->trial = false;
	}
	pthread_mutex_unlock(&server->fetch->lock);
	server->responded_at = now;
	server->late = false;
	server->understands |= bid_response_is_definite(&transfer->response);
}

void bid_http_server_note_late(struct bid_http_server *server, struct bid_transfer *transfer, int64_t now)
{
	int64_t recently = transfer->deadline.at_ms - server->fetch->config.first_byte_ms / 2;
	enum bid_health health = server->responded_at > 0 && !server->late ? BID_HEALTH_BAD : BID_HEALTH_DEAD;

	/* a server that downloads or unpacks the file sends no header, but it responds to other requests */
	if (transfer->state == BID_TRANSFER_LATE || server->responded_at > recently)
		return;
	server->late = true;
	pthread_mutex_lock(&server->fetch->lock);
	bid_breaker_note(&server->breaker, now, transfer->trial, health, 0, transfer->end.text);
	pthread_mutex_unlock(&server->fetch->lock);
	/* the trial has failed, and the next one is another request */
	transfer->trial = false;
	transfer->state = BID_TRANSFER_LATE;
}

void bid_http_server_note_end(struct bid_http_server *server, const struct bid_transfer *transfer, int64_t now)
{
	const struct bid_transfer_end *end = &transfer->end;
	int64_t retry_after_s = transfer->retry_after_s > BID_RETRY_AFTER_WAIT_S ? transfer->retry_after_s : 0;

	pthread_mutex_lock(&server->fetch->lock);
	bid_breaker_note(&server->breaker, now, transfer->trial, end->health, retry_after_s, end->text);
	pthread_mutex_unlock(&server->fetch->lock);
}
