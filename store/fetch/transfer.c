// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fetch/classify.h"
#include "fetch/headers.h"
#include "fetch/network.h"
#include "fetch/url.h"

#define REDIRECTS_MAX	   5L
#define RETRY_AFTER_SANE_S 86400 /* a longer Retry-After counts as this */

/* Set the options for certificates and passwords. */
static bool set_trust(struct bid_transfer *transfer)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);
	CURL *easy = transfer->easy;
	bool failed = false;

	if (config->ca_file)
		failed |= curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file) != CURLE_OK;
	if (config->ca_directory)
		failed |= curl_easy_setopt(easy, CURLOPT_CAPATH, config->ca_directory) != CURLE_OK;
	if (config->netrc_file) {
		failed |= curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL) != CURLE_OK;
		failed |= curl_easy_setopt(easy, CURLOPT_NETRC_FILE, config->netrc_file) != CURLE_OK;
	}
	return !failed;
}

static int set_options(struct bid_transfer *transfer)
{
	bool https = strncasecmp(transfer->url, "https:", 6) == 0;
	CURL *easy = transfer->easy;
	bool failed = false;

	failed |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK;
	/* libcurl keeps user name and password from other servers, and bid_headers_set() the secret headers */
	failed |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_MAXREDIRS, REDIRECTS_MAX) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https") != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)bid_transfer_config(transfer)->connect_ms) != CURLE_OK;
	/* the path of a source file comes from the compiler, unnormalised */
	failed |= curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_FAILONERROR, 0L) != CURLE_OK;
	/* decodes an encoding, although bid_headers_set() requests none: an encoded body has no size and no parts */
	failed |= curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "") != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_FILETIME, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L * 1024) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "bidfs/" BID_VERSION " (debuginfod client)") != CURLE_OK;

	/* HTTP/2 needs TLS here; a libcurl without HTTP/2 refuses the option, and works without it */
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)(https ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, https ? 1L : 0L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* the network thread does not wait for getaddrinfo(3) at the end of an attempt */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	return !failed && set_trust(transfer) ? 0 : -ENOMEM;
}

static int prepare_handle(struct bid_transfer *transfer)
{
	int r;

	transfer->easy = curl_easy_init();
	if (!transfer->easy)
		return -ENOMEM;
	r = bid_transfer_set_callbacks(transfer);
	return r == 0 ? set_options(transfer) : r;
}

static int send_request(struct bid_transfer *transfer)
{
	char range[32];
	int r = bid_headers_set(transfer);

	snprintf(range, sizeof(range), "%" PRIu64 "-", transfer->resume.offset);
	if (curl_easy_setopt(transfer->easy, CURLOPT_RANGE, transfer->resume.offset ? range : NULL) != CURLE_OK ||
	    curl_easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_TIME, 0L) != CURLE_OK ||
	    curl_easy_setopt(transfer->easy, CURLOPT_URL, transfer->url) != CURLE_OK)
		r = -ENOMEM;
	if (r == 0 && curl_multi_add_handle(transfer->server->fetch->multi, transfer->easy) != CURLM_OK)
		r = -ENOMEM;
	return r;
}

/*
 * Plan to resume the body. This needs a server with parts (RFC 9110, 14.3) and a strong validator: servers of plain files qualify,
 * debuginfod does not.
 */
void bid_transfer_plan_resume(struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;
	uint64_t size = bid_response_size(response);
	bool has_part = bid_response_has_artifact(response) && transfer->received && transfer->received < size;

	/* without a body nothing changes, except after a 416: the file has changed */
	if (!bid_response_has_artifact(response) && response->status != 416)
		return;
	if (!has_part || size == BID_SIZE_UNKNOWN || transfer->server->ranges == BID_RANGES_IGNORED) {
		transfer->resume = (struct bid_resume){ 0 };
	} else if (response->status == 206) {
		transfer->resume.offset = transfer->received;
	} else if (bid_response_offers_parts(response)) {
		transfer->resume = (struct bid_resume){ .offset = transfer->received, .size = size };
		memcpy(transfer->resume.etag, response->etag, sizeof(transfer->resume.etag));
	} else {
		transfer->resume = (struct bid_resume){ 0 };
	}
}

void bid_transfer_begin(struct bid_transfer *transfer)
{
	unsigned max_time_ms = bid_transfer_config(transfer)->max_time_ms;
	bool fresh = transfer->begun > 0 || transfer->probe;
	int r = 0;

	if (transfer->begun++ == 0)
		transfer->ends_at = max_time_ms ? bid_clock_ms() + max_time_ms : INT64_MAX;
	transfer->attempts++;
	bid_response_init(&transfer->response);
	transfer->hops = 0;
	transfer->received = 0;
	transfer->result = (struct bid_attempt_result){ 0 };
	transfer->curl_error[0] = '\0';
	bid_transfer_connect(transfer);

	if (!transfer->easy)
		r = prepare_handle(transfer);
	/* the cause of the last failure may also have broken the idle connections */
	if (r == 0 && curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L) != CURLE_OK)
		r = -ENOMEM;
	if (r == 0)
		r = send_request(transfer);
	if (r < 0) {
		bid_classify(transfer, BID_OUTCOME_FAILED, false, "out of memory");
		bid_transfer_set_deadline(transfer, 0);
	}
}

char *bid_transfer_led_to(const struct bid_transfer *transfer)
{
	char *url = NULL, *led_to;

	if (transfer->hops == 0 || curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK || !url)
		return NULL;
	led_to = bid_fetch_url_shown(url);
	/* a query may contain a storage service's signature */
	if (led_to)
		led_to[strcspn(led_to, "?#")] = '\0';
	return led_to;
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
	return seconds <= 0 ? 0 : seconds < RETRY_AFTER_SANE_S ? seconds : RETRY_AFTER_SANE_S;
}

int64_t bid_transfer_modified(const struct bid_transfer *transfer)
{
	curl_off_t seconds = -1;

	if (transfer->easy)
		curl_easy_getinfo(transfer->easy, CURLINFO_FILETIME_T, &seconds);
	/* a federating server may send 1969 */
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
	transfer->kind = request->kind;
	transfer->deadline = (struct bid_timer){ .kind = BID_TRANSFER_DEADLINE, .user = transfer };
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
	bid_timer_disarm(&transfer->deadline);
	curl_easy_cleanup(transfer->easy);
	curl_slist_free_all(transfer->headers);
	free(transfer->url);
	free(transfer->shown);
	free(transfer);
}
