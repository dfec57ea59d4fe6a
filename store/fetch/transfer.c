// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "fetch/judge.h"
#include "fetch/network.h"
#include "fetch/url.h"

#define REDIRECTS_MAX		5
#define ERROR_BODY_MAX		(16 * 1024)	/* reading less would cost the connection, reading more is a waste */
#define CONNECT_GRACE_MS	250		/* so that libcurl's own timer, which has the better words, comes first */

int64_t bid_transfer_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const struct bid_fetch_config *bid_transfer_config(const struct bid_transfer *transfer)
{
	return &transfer->server->fetch->config;
}

static int on_request(void *user, char *primary_ip, char *local_ip, int primary_port, int local_port)
{
	struct bid_transfer *transfer = user;

	transfer->phase = BID_PHASE_WAITING;
	transfer->deadline = bid_transfer_clock() + bid_transfer_config(transfer)->first_byte_ms;
	return CURL_PREREQFUNC_OK;
}

static void begin_connecting(struct bid_transfer *transfer)
{
	transfer->phase = BID_PHASE_CONNECTING;
	transfer->deadline = bid_transfer_clock() + bid_transfer_config(transfer)->connect_ms + CONNECT_GRACE_MS;
}

static void set_body_deadline(struct bid_transfer *transfer)
{
	transfer->deadline = transfer->stall_at < transfer->window_end ? transfer->stall_at : transfer->window_end;
}

void bid_transfer_begin_window(struct bid_transfer *transfer, int64_t now)
{
	transfer->window_end = now + bid_transfer_config(transfer)->first_byte_ms;
	transfer->window_received = transfer->received;
	set_body_deadline(transfer);
}

/* Returns 0 if the body may come. */
static int begin_body(struct bid_transfer *transfer)
{
	uint64_t size = bid_response_size(&transfer->response), max_size = bid_transfer_config(transfer)->max_size;
	int64_t now = bid_transfer_clock();
	int r;

	transfer->phase = BID_PHASE_BODY;
	transfer->stall_at = now + bid_transfer_config(transfer)->stall_ms;
	bid_transfer_begin_window(transfer, now);
	if (transfer->response.status != 200)
		return 0;

	if (transfer->response.encoded) {
		bid_judge(transfer, BID_OUTCOME_REFUSED, false, "came in an encoding that was not asked for");
		return -1;
	}
	if (max_size && size != BID_SIZE_UNKNOWN && size > max_size) {
		bid_judge(transfer, BID_OUTCOME_TOO_LARGE, false, "%" PRIu64 " bytes, the limit is %" PRIu64, size, max_size);
		return -1;
	}
	r = transfer->receiver.head(transfer->user, size);
	if (r)
		bid_judge_receiver(transfer, r);
	return r;
}

static size_t on_header(char *line, size_t unit, size_t n, void *user)
{
	struct bid_transfer *transfer = user;
	size_t len = unit * n;

	/* trailers */
	if (transfer->phase == BID_PHASE_BODY)
		return len;

	switch (bid_response_header(&transfer->response, line, len)) {
	case BID_RESPONSE_MORE:
		break;
	case BID_RESPONSE_NEXT:
		if (transfer->response.redirects)
			begin_connecting(transfer);
		break;
	case BID_RESPONSE_BODY:
		if (begin_body(transfer) != 0)
			return 0;
		break;
	case BID_RESPONSE_TOO_LONG:
		bid_judge(transfer, BID_OUTCOME_REFUSED, false, "header above %d bytes", BID_RESPONSE_HEADER_MAX);
		return 0;
	}
	return len;
}

/* Returns 0 if more of the body may come. */
static int take_body(struct bid_transfer *transfer, const char *data, size_t len)
{
	uint64_t size = bid_response_size(&transfer->response), max_size = bid_transfer_config(transfer)->max_size;
	int r;

	if (max_size && transfer->received > max_size) {
		bid_judge(transfer, BID_OUTCOME_TOO_LARGE, false, "more than the limit of %" PRIu64 " bytes", max_size);
		return -1;
	}
	if (size != BID_SIZE_UNKNOWN && transfer->received > size) {
		bid_judge(transfer, BID_OUTCOME_UNREACHABLE, true, "more than the announced %" PRIu64 " bytes", size);
		return -1;
	}
	r = transfer->receiver.body(transfer->user, data, len);
	if (r)
		bid_judge_receiver(transfer, r);
	return r;
}

static size_t on_body(char *data, size_t unit, size_t n, void *user)
{
	struct bid_transfer *transfer = user;
	size_t len = unit * n;

	if (len == 0)
		return 0;
	transfer->received += len;
	transfer->stall_at = bid_transfer_clock() + bid_transfer_config(transfer)->stall_ms;
	set_body_deadline(transfer);
	if (transfer->response.status == 200)
		return take_body(transfer, data, len) == 0 ? len : 0;

	bid_response_error_body(&transfer->response, data, len);
	if (transfer->received <= ERROR_BODY_MAX)
		return len;
	bid_judge_status(transfer);
	return 0;
}

/* libcurl's own socket would be inherited by the programs that a daemon starts. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int set_callbacks(struct bid_transfer *transfer)
{
	CURL *easy = transfer->easy;
	bool failed = false;

	failed |= curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->trouble) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket) != CURLE_OK;
	return failed ? -ENOMEM : 0;
}

static int set_options(struct bid_transfer *transfer)
{
	bool https = strncasecmp(transfer->url, "https:", 6) == 0;
	CURL *easy = transfer->easy;
	bool failed = false;

	failed |= curl_easy_setopt(easy, CURLOPT_URL, transfer->url) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https") != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)bid_transfer_config(transfer)->connect_ms) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_FAILONERROR, 0L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_FILETIME, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L * 1024) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "bidfs/" BID_VERSION " (+debuginfod client)") != CURLE_OK;

	/* without TLS there is no HTTP/2 to wait for; a libcurl that was built without it says no to this, and works as well */
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)(https ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, https ? 1L : 0L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* otherwise the end of a try waits for getaddrinfo(3), and the network thread with it */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	return failed ? -ENOMEM : 0;
}

static int set_headers(struct bid_transfer *transfer)
{
	char line[64];

	if (!bid_transfer_config(transfer)->max_size)
		return 0;
	snprintf(line, sizeof(line), "X-DEBUGINFOD-MAXSIZE: %" PRIu64, bid_transfer_config(transfer)->max_size);
	transfer->headers = curl_slist_append(NULL, line);
	if (!transfer->headers)
		return -ENOMEM;
	return curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers) == CURLE_OK ? 0 : -ENOMEM;
}

static int prepare(struct bid_transfer *transfer)
{
	int r;

	transfer->easy = curl_easy_init();
	if (!transfer->easy)
		return -ENOMEM;
	r = set_callbacks(transfer);
	if (r == 0)
		r = set_options(transfer);
	if (r == 0)
		r = set_headers(transfer);
	return r;
}

void bid_transfer_begin(struct bid_transfer *transfer)
{
	bool fresh = transfer->judgement.broken;
	int r = 0;

	transfer->tries++;
	bid_response_init(&transfer->response);
	transfer->received = 0;
	transfer->judgement = (struct bid_judgement){ 0 };
	transfer->trouble[0] = '\0';
	begin_connecting(transfer);

	if (!transfer->easy)
		r = prepare(transfer);
	/* what broke the last try may have broken the idle connections as well */
	if (r == 0 && curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L) != CURLE_OK)
		r = -ENOMEM;
	if (r == 0 && curl_multi_add_handle(transfer->server->fetch->multi, transfer->easy) != CURLM_OK)
		r = -ENOMEM;
	if (r < 0) {
		bid_judge(transfer, BID_OUTCOME_FAILED, false, "out of memory");
		transfer->deadline = 0;
	}
}

void bid_transfer_stop(struct bid_transfer *transfer)
{
	if (transfer->easy)
		curl_multi_remove_handle(transfer->server->fetch->multi, transfer->easy);
}

int64_t bid_transfer_retry_after(const struct bid_transfer *transfer)
{
	curl_off_t seconds = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &seconds);
	return seconds > 0 ? seconds : 0;
}

int64_t bid_transfer_modified(const struct bid_transfer *transfer)
{
	curl_off_t seconds = -1;

	if (transfer->easy)
		curl_easy_getinfo(transfer->easy, CURLINFO_FILETIME_T, &seconds);
	/* a federating server is known to say 1969 */
	return seconds > 0 ? seconds : 0;
}

int bid_transfer_new(struct bid_server *server, const struct bid_request *request, const struct bid_receiver *receiver, void *user,
		     struct bid_transfer **ret_transfer)
{
	struct bid_transfer *transfer;
	int r;

	transfer = calloc(1, sizeof(*transfer));
	if (!transfer)
		return -ENOMEM;
	transfer->server = server;
	transfer->receiver = *receiver;
	transfer->user = user;
	bid_response_init(&transfer->response);
	r = bid_url_for_request(server->url, request, &transfer->url);
	if (r == 0)
		r = bid_url_for_request(server->name, request, &transfer->shown);
	if (r < 0) {
		bid_transfer_free(transfer);
		return r;
	}
	*ret_transfer = transfer;
	return 0;
}

void bid_transfer_free(struct bid_transfer *transfer)
{
	curl_easy_cleanup(transfer->easy);
	curl_slist_free_all(transfer->headers);
	free(transfer->url);
	free(transfer->shown);
	free(transfer);
}
