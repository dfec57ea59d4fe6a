// SPDX-License-Identifier: LGPL-2.1-or-later
/* Callbacks of libcurl. */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "fetch/classify.h"
#include "fetch/headers.h"
#include "fetch/network.h"

#define ERROR_BODY_MAX (16 * 1024) /* limit; reading less would cost the connection */
#define KEPT_MS	       1000
#define KEPT_TIMES     4

/*
 * Returns the time after which a response is late. A reused connection may be dead, and has a second or a few times the server's
 * latency.
 */
static int64_t answer_limit_ms(const struct bid_transfer *transfer)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);
	int64_t kept = (int64_t)transfer->server->latency_ms * KEPT_TIMES;

	if (!bid_is_reused(transfer))
		return transfer->server->answered_at > 0 ? config->first_byte_ms : config->first_contact_ms;
	if (kept < KEPT_MS)
		kept = KEPT_MS;
	return kept < config->first_byte_ms ? kept : config->first_byte_ms;
}

/* Called before each request, also before that to the target of a redirect. */
static int on_request(void *user, char *primary_ip, char *local_ip, int primary_port, int local_port)
{
	struct bid_transfer *transfer = user;

	if (transfer->hops > 0 && bid_headers_set(transfer) < 0) {
		bid_classify(transfer, BID_OUTCOME_FAILED, false, "out of memory");
		return CURL_PREREQFUNC_ABORT;
	}
	transfer->state = BID_TRANSFER_WAITING;
	transfer->sent_at = bid_clock_ms();
	bid_transfer_set_deadline(transfer, transfer->sent_at + answer_limit_ms(transfer));
	return CURL_PREREQFUNC_OK;
}

/* Accept the requested part of a body. Returns 0, or -1 with the result set. */
static int begin_part(struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;
	const struct bid_resume *resume = &transfer->resume;

	if (resume->offset == 0) {
		bid_classify_status(transfer);
		return -1;
	}
	if (response->part_start != resume->offset || response->part_size != resume->size || response->encoded ||
	    (response->etag[0] && strcmp(response->etag, resume->etag) != 0)) {
		bid_server_note_ranges(transfer->server, false);
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, true, "sent another part than requested");
		return -1;
	}
	bid_server_note_ranges(transfer->server, true);
	transfer->received = resume->offset;
	return 0;
}

static bool is_for_page(const struct bid_transfer *transfer)
{
	const char *dot = strrchr(transfer->url, '.');

	return transfer->kind == BID_KIND_SOURCE && dot && (strcasecmp(dot, ".html") == 0 || strcasecmp(dot, ".htm") == 0);
}

/*
 * Refuse a source file or a section if the header contradicts it, and set the result. The X-DEBUGINFOD-SIZE of a section may be
 * that of the whole file, which elfutils' server has just unpacked.
 */
static bool refuses_text(struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;

	if (!bid_kind_has_detail(transfer->kind))
		return false;
	if (response->is_page && !is_for_page(transfer))
		bid_classify(transfer, BID_OUTCOME_REJECTED, false, "a web page");
	else if (bid_response_size(response) == 0 && !bid_declares_empty(transfer))
		bid_classify_empty(transfer);
	else if (transfer->kind == BID_KIND_SOURCE && bid_response_contradicts_itself(response))
		bid_classify(transfer, BID_OUTCOME_REJECTED, false, "announced as %" PRIu64 " bytes, and as %" PRIu64,
			     response->content_length, response->debuginfod_size);
	return transfer->result.outcome != BID_OUTCOME_NONE;
}

/* Accept the whole body. Returns 0, or non-zero with the result set. */
static int begin_whole(struct bid_transfer *transfer)
{
	int r;

	/* the file has not changed, and the server ignored Range */
	if (transfer->resume.offset && strcmp(transfer->response.etag, transfer->resume.etag) == 0)
		bid_server_note_ranges(transfer->server, false);
	if (refuses_text(transfer))
		return -1;
	r = transfer->receiver.head(transfer->user, bid_response_size(&transfer->response));
	if (r)
		bid_classify_receiver(transfer, r);
	return r;
}

/* Decide on the body after its header. Returns 0 to accept it. */
static int begin_body(struct bid_transfer *transfer)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);
	int64_t now = bid_clock_ms();
	int r = 0;

	/* see refuses_text(); the section's end is marked in another way */
	if (transfer->kind == BID_KIND_SECTION && !bid_ends_with_connection(transfer))
		transfer->response.debuginfod_size = BID_SIZE_UNKNOWN;
	bid_server_note_answer(transfer->server, transfer, now);
	if (transfer->response.redirects) {
		transfer->hops++;
		bid_transfer_connect(transfer);
		return 0;
	}
	transfer->state = BID_TRANSFER_BODY;
	if (transfer->response.status == 206)
		r = begin_part(transfer);
	else if (transfer->response.status == 200)
		r = begin_whole(transfer);
	bid_transfer_set_deadline(transfer, now + config->stall_ms);
	/* only from the header on, because the server may unpack the file before */
	curl_easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_LIMIT, BID_SLOWEST);
	curl_easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_TIME, bid_slow_s(config));
	return r;
}

static size_t on_header(char *line, size_t unit, size_t n, void *user)
{
	struct bid_transfer *transfer = user;
	size_t len = unit * n;

	/* trailers, also of a redirect */
	if (transfer->state == BID_TRANSFER_BODY || transfer->state == BID_TRANSFER_CONNECTING)
		return len;

	switch (bid_response_header(&transfer->response, line, len)) {
	case BID_RESPONSE_MORE:
	case BID_RESPONSE_INTERIM:
		break;
	case BID_RESPONSE_BODY:
		if (begin_body(transfer) != 0)
			return 0;
		break;
	case BID_RESPONSE_TOO_LONG:
		bid_classify(transfer, BID_OUTCOME_REFUSED, false, "header above %d bytes", BID_RESPONSE_HEADER_MAX);
		return 0;
	}
	return len;
}

/* Pass bytes to the receiver. Returns 0 if more may follow. */
static int take_body(struct bid_transfer *transfer, const char *data, size_t len)
{
	uint64_t size = bid_response_size(&transfer->response);
	int r;

	if (size != BID_SIZE_UNKNOWN && transfer->received > size) {
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, true, "more than the announced %" PRIu64 " bytes", size);
		return -1;
	}
	r = transfer->receiver.body(transfer->user, data, len);
	if (r && r != -EAGAIN)
		bid_classify_receiver(transfer, r);
	return r;
}

/* Pause the body. The receiver gets the last @len bytes again when it resumes; until then no deadline runs. */
static size_t pause_body(struct bid_transfer *transfer, size_t len)
{
	transfer->received -= len;
	transfer->paused = true;
	bid_transfer_set_deadline(transfer, INT64_MAX);
	return CURL_WRITEFUNC_PAUSE;
}

static size_t on_body(char *data, size_t unit, size_t n, void *user)
{
	struct bid_transfer *transfer = user;
	size_t len = unit * n;
	int r;

	if (len == 0)
		return 0;
	/* bytes of a body before the end of the header */
	if (transfer->state != BID_TRANSFER_BODY) {
		bid_classify(transfer, BID_OUTCOME_REFUSED, false, "answer out of shape");
		return 0;
	}
	transfer->received += len;
	bid_transfer_set_deadline(transfer, bid_clock_ms() + bid_transfer_config(transfer)->stall_ms);
	if (bid_response_has_artifact(&transfer->response)) {
		r = take_body(transfer, data, len);
		return r == 0 ? len : r == -EAGAIN ? pause_body(transfer, len) : 0;
	}

	bid_response_error_body(&transfer->response, data, len);
	if (transfer->received <= ERROR_BODY_MAX)
		return len;
	bid_classify_status(transfer);
	return 0;
}

static void note_peer(struct bid_transfer *transfer, const struct curl_sockaddr *address)
{
	char host[INET6_ADDRSTRLEN], port[sizeof("65535")];
	bool six = address->family == AF_INET6;

	if (getnameinfo(&address->addr, address->addrlen, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(transfer->peer, sizeof(transfer->peer), "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port);
}

/* Create a socket with close-on-exec: programs started by the daemon must not inherit libcurl's sockets. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct bid_transfer *transfer = user;

	note_peer(transfer, address);
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

int bid_transfer_set_callbacks(struct bid_transfer *transfer)
{
	CURL *easy = transfer->easy;
	bool failed = false;

	failed |= curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->curl_error) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer) != CURLE_OK;
	return failed ? -ENOMEM : 0;
}
