// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/signature.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "fetch/network.h"
#include "fetch/url.h"

#define PROBE_WAIT_MS  1000 /* wait of other requests for the probe: more would be a second bill for one outage */
#define UNSUPPORTED_MS (3600 * 1000) /* a server may be updated */

static void refuse_transfer(struct bid_transfer *transfer, enum bid_outcome outcome)
{
	transfer->result = (struct bid_attempt_result){ .outcome = outcome };
}

/* Under the lock. */
static void refuse_by_breaker(struct bid_server *server, struct bid_transfer *transfer)
{
	server->refused++;
	refuse_transfer(transfer, BID_OUTCOME_UNREACHABLE);
	bid_breaker_describe(&server->breaker, transfer->result.text, sizeof(transfer->result.text));
}

/* Is the breaker open and no probe awaited? Under the lock. */
static bool is_left_alone(const struct bid_server *server, int64_t now)
{
	const struct bid_breaker *breaker = &server->breaker;

	return breaker->open && (breaker->probing ? now >= server->probe_awaited_until : now < breaker->until);
}

bool bid_server_refuses(struct bid_server *server, struct bid_transfer *transfer, int64_t now)
{
	struct bid_attempt_result *result = &transfer->result;
	bool refused;

	if (now < server->unsupported_until[transfer->kind]) {
		refuse_transfer(transfer, BID_OUTCOME_UNSUPPORTED);
		snprintf(result->text, sizeof(result->text), "not offered by this server, as of its last response");
		return true;
	}
	pthread_mutex_lock(&server->fetch->lock);
	refused = is_left_alone(server, now);
	if (refused)
		refuse_by_breaker(server, transfer);
	pthread_mutex_unlock(&server->fetch->lock);
	return refused;
}

bool bid_server_admits(struct bid_server *server, struct bid_transfer *transfer, int64_t now)
{
	bool admitted;

	pthread_mutex_lock(&server->fetch->lock);
	admitted = bid_breaker_admits(&server->breaker, now, &transfer->probe);
	pthread_mutex_unlock(&server->fetch->lock);
	if (transfer->probe)
		server->probe_awaited_until = now + PROBE_WAIT_MS;
	return admitted;
}

bool bid_server_readmits(struct bid_server *server, struct bid_transfer *transfer, bool waits, int64_t now)
{
	bool refused;

	pthread_mutex_lock(&server->fetch->lock);
	refused = server->breaker.open && !waits;
	if (refused)
		refuse_by_breaker(server, transfer);
	pthread_mutex_unlock(&server->fetch->lock);
	return !refused && bid_server_admits(server, transfer, now);
}

static const char *protocol_of(const struct bid_transfer *transfer)
{
	long version = CURL_HTTP_VERSION_NONE;

	curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_VERSION, &version);
	switch (version) {
	case CURL_HTTP_VERSION_1_0:
		return "HTTP/1.0";
	case CURL_HTTP_VERSION_1_1:
		return "HTTP/1.1";
	case CURL_HTTP_VERSION_2_0:
		return "HTTP/2";
	case CURL_HTTP_VERSION_3:
		return "HTTP/3";
	default:
		return NULL;
	}
}

void bid_server_note_answer(struct bid_server *server, struct bid_transfer *transfer, int64_t now)
{
	bool well = !bid_response_is_server_error(&transfer->response);
	int64_t ms = now - transfer->sent_at;
	unsigned sample = ms < 1 ? 1 : ms > 3600 * 1000 ? 3600 * 1000 : (unsigned)ms;

	pthread_mutex_lock(&server->fetch->lock);
	server->latency_ms = server->latency_ms ? (7 * server->latency_ms + sample + 4) / 8 : sample;
	server->protocol = protocol_of(transfer);
	/* a resumed body is a proof, a header is not */
	if (transfer->response.status == 200 && server->ranges < BID_RANGES_SENT)
		server->ranges = bid_response_offers_parts(&transfer->response) ? BID_RANGES_OFFERED : BID_RANGES_NONE;
	/* the late response has come: other requests need not wait for its body */
	if (well && transfer->state == BID_TRANSFER_LATE)
		bid_breaker_note(&server->breaker, now, false, BID_SIGN_HEALTHY, 0, "");
	if (well && transfer->probe) {
		bid_breaker_answered(&server->breaker);
		transfer->probe = false;
	}
	pthread_mutex_unlock(&server->fetch->lock);
	server->answered_at = now;
	server->late = false;
	server->understands |= bid_response_is_definite(&transfer->response);
}

enum bid_sign bid_server_late_sign(struct bid_server *server)
{
	bool again = server->late;

	server->late = true;
	return server->answered_at > 0 && !again ? BID_SIGN_BAD : BID_SIGN_DEAD;
}

void bid_server_note_late(struct bid_server *server, struct bid_transfer *transfer, int64_t now)
{
	const struct bid_attempt_result *result = &transfer->result;

	if (result->sign == BID_SIGN_NONE)
		return;
	pthread_mutex_lock(&server->fetch->lock);
	bid_breaker_note(&server->breaker, now, transfer->probe, result->sign, 0, result->text);
	pthread_mutex_unlock(&server->fetch->lock);
	/* the probe has failed, and the next one is another request */
	transfer->probe = false;
	transfer->state = BID_TRANSFER_LATE;
}

void bid_server_note_ranges(struct bid_server *server, bool honoured)
{
	pthread_mutex_lock(&server->fetch->lock);
	server->ranges = honoured ? BID_RANGES_SENT : BID_RANGES_IGNORED;
	pthread_mutex_unlock(&server->fetch->lock);
}

void bid_server_note_end(struct bid_server *server, const struct bid_transfer *transfer, int64_t now)
{
	const struct bid_attempt_result *result = &transfer->result;
	int64_t retry_after_s = transfer->retry_after_s > BID_RETRY_AFTER_WAIT_S ? transfer->retry_after_s : 0;

	pthread_mutex_lock(&server->fetch->lock);
	if (bid_response_lacks_kind(&transfer->response))
		server->unsupported_until[transfer->kind] = now + UNSUPPORTED_MS;
	bid_breaker_note(&server->breaker, now, transfer->probe, result->sign, retry_after_s, result->text);
	pthread_mutex_unlock(&server->fetch->lock);
}

static struct bid_server *server_of(struct bid_source *source)
{
	return (struct bid_server *)source;
}

static int server_start(struct bid_source *source, const struct bid_request *request, const struct bid_receiver *receiver,
			void *user)
{
	struct bid_server *server = server_of(source);
	struct bid_transfer *transfer;
	int r;

	r = bid_transfer_new(server, request, receiver, user, &transfer);
	if (r < 0)
		return r;
	bid_network_submit(server->fetch, transfer);
	return 0;
}

static void server_cancel(struct bid_source *source, const void *user)
{
	bid_network_order(server_of(source), user, BID_TRANSFER_CANCEL);
}

static void server_resume(struct bid_source *source, const void *user)
{
	bid_network_order(server_of(source), user, BID_TRANSFER_RESUME);
}

static void server_checked(struct bid_source *source, bool right, const char *text)
{
	struct bid_server *server = server_of(source);

	pthread_mutex_lock(&server->fetch->lock);
	bid_breaker_note(&server->breaker, bid_clock_ms(), false, right ? BID_SIGN_HEALTHY : BID_SIGN_BAD, 0, text);
	pthread_mutex_unlock(&server->fetch->lock);
}

static void server_free(struct bid_source *source)
{
	struct bid_server *server = server_of(source);

	bid_network_drain(server);
	free(server->url);
	free(server->name);
	free(server);
}

/* Returns bits of the kinds that the server lacks. Under the lock. */
static unsigned kinds_lacking(const struct bid_server *server, int64_t now)
{
	unsigned lacks = 0;

	for (int kind = 0; kind < BID_KIND_END; kind++)
		if (now < server->unsupported_until[kind])
			lacks |= 1U << kind;
	return lacks;
}

static void server_health(struct bid_source *source, struct bid_source_health *ret_health)
{
	struct bid_server *server = server_of(source);
	const struct bid_breaker *breaker = &server->breaker;
	int64_t now = bid_clock_ms();

	pthread_mutex_lock(&server->fetch->lock);
	*ret_health = (struct bid_source_health){
		.breaker = !breaker->open     ? BID_BREAKER_CLOSED
			   : breaker->probing ? BID_BREAKER_PROBING
					      : BID_BREAKER_OPEN,
		.failures = breaker->failures,
		.next_probe_s = bid_breaker_remaining_s(breaker, now),
		.latency_ms = server->latency_ms,
		.refused = server->refused,
		.protocol = server->protocol,
		.ranges = server->ranges,
		.lacks = kinds_lacking(server, now),
	};
	snprintf(ret_health->trouble, sizeof(ret_health->trouble), "%s", breaker->trouble);
	pthread_mutex_unlock(&server->fetch->lock);
}

static const struct bid_source_ops server_ops = {
	.start = server_start,
	.cancel = server_cancel,
	.resume = server_resume,
	.checked = server_checked,
	.free = server_free,
	.health = server_health,
};

static int tree_new(const struct bid_fetch *fetch, const char *url, struct bid_source **ret_source)
{
	bid_auto_free char *path = NULL;
	int r = bid_url_tree_path(url, &path);

	return r < 0 ? r
		     : bid_source_tree_new(url, path, fetch->config.own_device, fetch->config.for_all, fetch->config.first_byte_ms,
					   fetch->config.links, ret_source);
}

/* Load the certificates, once. Returns -EOPNOTSUPP, after a warning, if the signatures of @url cannot be checked. */
static int load_signers(struct bid_fetch *fetch, const char *url)
{
	int r = fetch->signers ? 0 : bid_signers_load(&fetch->signers);
	const char *why = r == -EOPNOTSUPP	 ? "this build cannot check signatures"
			  : bid_url_is_tree(url) ? "a directory has no signatures"
						 : NULL;
	bid_auto_free char *shown = bid_fetch_url_shown(url);

	if (r == 0 && why)
		r = -EOPNOTSUPP;
	if (r == -EOPNOTSUPP)
		bid_warning("%s, server with ima:enforcing ignored: '%s'", why, shown ? shown : "");
	return r;
}

int bid_fetch_server_new(struct bid_fetch *fetch, const char *url, struct bid_source **ret_source)
{
	bid_auto_free char *normal = NULL, *name = NULL;
	struct bid_server *server;
	bool enforcing;
	int r;

	r = bid_url_normalise(bid_url_behind_policy(url, &enforcing), &normal);
	enforcing |= fetch->config.enforce;
	if (r == 0 && enforcing)
		r = load_signers(fetch, normal);
	if (r < 0)
		return r;
	if (bid_url_is_tree(normal))
		return tree_new(fetch, normal, ret_source);
	name = bid_fetch_url_shown(normal);
	if (!name)
		return -ENOMEM;
	server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	server->fetch = fetch;
	server->url = bid_steal(normal);
	server->name = bid_steal(name);
	bid_breaker_init(&server->breaker, (unsigned)bid_clock_ms() ^ (unsigned)getpid());
	server->source.ops = &server_ops;
	server->source.name = server->name;
	server->source.signers = enforcing ? fetch->signers : NULL;
	TAILQ_INIT(&server->waiting);
	server->alarm = (struct bid_timer){ .kind = BID_SERVER_ALARM, .user = server };
	*ret_source = &server->source;
	return 0;
}
