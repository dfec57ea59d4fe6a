// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/classify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fetch/network_thread.h"

/* Returns the health signal of a request without a complete response. */
static enum bid_health health_of(const struct bid_transfer *transfer, enum bid_outcome outcome)
{
	switch (transfer->state) {
	case BID_TRANSFER_CONNECTING:
		if (outcome == BID_OUTCOME_FAILED)
			return BID_HEALTH_NONE;
		/* a redirect may lead to a dead server, or to a refused URL */
		if (transfer->redirects > 0)
			return outcome == BID_OUTCOME_UNAVAILABLE ? BID_HEALTH_BAD : BID_HEALTH_HEALTHY;
		return BID_HEALTH_DEAD;
	case BID_TRANSFER_WAITING:
	case BID_TRANSFER_LATE:
		return BID_HEALTH_BAD;
	case BID_TRANSFER_BODY:
		/* the broker notes wrong content */
		return outcome == BID_OUTCOME_UNAVAILABLE ? BID_HEALTH_BAD
		       : outcome == BID_OUTCOME_REJECTED  ? BID_HEALTH_NONE
							  : BID_HEALTH_HEALTHY;
	default:
		return BID_HEALTH_NONE;
	}
}

void bid_classify(struct bid_transfer *transfer, enum bid_outcome outcome, bool retry, const char *format, ...)
{
	struct bid_transfer_end *end = &transfer->end;
	va_list arguments;

	end->outcome = outcome;
	end->retry = retry;
	end->health = health_of(transfer, outcome);
	va_start(arguments, format);
	vsnprintf(end->text, sizeof(end->text), format, arguments);
	va_end(arguments);
}

/* Does the status mean an error of the server? A 400 before the first artifact or 404 does: the URL may be no debuginfod. */
static bool is_server_error(const struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;

	return bid_response_is_server_error(response) || (response->status == 400 && !transfer->server->understands);
}

void bid_classify_status(struct bid_transfer *transfer)
{
	struct bid_transfer_end *end = &transfer->end;

	/* the file has changed: request the whole */
	if (transfer->resume.offset && transfer->response.status == 416) {
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "HTTP 416: the file has changed");
		return;
	}
	end->health = is_server_error(transfer) ? BID_HEALTH_BAD : BID_HEALTH_HEALTHY;
	end->outcome = bid_response_outcome(&transfer->response, &end->retry);
	/* without X-DEBUGINFOD-MAXSIZE the status means something else (RFC 9110, 15.5.7) */
	if (end->outcome == BID_OUTCOME_TOO_LARGE && bid_transfer_config(transfer)->max_size == 0)
		end->outcome = BID_OUTCOME_REFUSED;
	if (transfer->server->tree)
		snprintf(end->text, sizeof(end->text), "%s", *transfer->response.text ? transfer->response.text : "read");
	else
		bid_response_describe(&transfer->response, end->text, sizeof(end->text));
}

void bid_classify_receiver(struct bid_transfer *transfer, int error)
{
	char words[128];

	if (error == -EBADMSG)
		bid_classify(transfer, BID_OUTCOME_REJECTED, false, "another artifact than requested");
	else
		bid_classify(transfer, BID_OUTCOME_FAILED, false, "could not keep it: %s",
			     strerror_r(-error, words, sizeof(words)));
}

/* Write "1234 of 9999 bytes", as far as the size is known, to @buf. Returns @buf. */
static const char *format_amount(const struct bid_transfer *transfer, char *buf, size_t size)
{
	uint64_t whole = bid_response_size(&transfer->response);

	if (whole == BID_SIZE_UNKNOWN)
		snprintf(buf, size, "%" PRIu64 " bytes", transfer->received);
	else
		snprintf(buf, size, "%" PRIu64 " of %" PRIu64 " bytes", transfer->received, whole);
	return buf;
}

/* Codes of libcurl. Any other code means a broken connection. */
static const struct code {
	CURLcode code;
	enum bid_outcome outcome;
	bool retry;
	const char *words; /* whole text; behind a colon at its end comes the reason */
} codes[] = {
	/* another look-up fails the same way, after the same time */
	{ CURLE_COULDNT_RESOLVE_PROXY, BID_OUTCOME_UNAVAILABLE, false, "could not resolve the proxy:" },
	{ CURLE_COULDNT_RESOLVE_HOST, BID_OUTCOME_UNAVAILABLE, false, "could not resolve the name" },
	{ CURLE_OPERATION_TIMEDOUT, BID_OUTCOME_UNAVAILABLE, false, "could not connect:" },
	{ CURLE_COULDNT_CONNECT, BID_OUTCOME_UNAVAILABLE, true, "could not connect:" },
	{ CURLE_SSL_CONNECT_ERROR, BID_OUTCOME_UNAVAILABLE, true, "no secure connection:" },
	{ CURLE_PEER_FAILED_VERIFICATION, BID_OUTCOME_UNAVAILABLE, false, "no secure connection:" },
	{ CURLE_SSL_CACERT_BADFILE, BID_OUTCOME_UNAVAILABLE, false, "no secure connection:" },
	{ CURLE_SSL_ISSUER_ERROR, BID_OUTCOME_UNAVAILABLE, false, "no secure connection:" },
	{ CURLE_UNSUPPORTED_PROTOCOL, BID_OUTCOME_REFUSED, false, "does not speak HTTP:" },
	{ CURLE_TOO_MANY_REDIRECTS, BID_OUTCOME_REFUSED, false, "redirected too often" },
	{ CURLE_URL_MALFORMAT, BID_OUTCOME_REFUSED, false, "redirected to an invalid URL" },
	{ CURLE_BAD_CONTENT_ENCODING, BID_OUTCOME_REFUSED, false, "came in an encoding that cannot be decoded:" },
	/* the callbacks set the end for their own errors: libcurl decodes the first member of a gzip body alone */
	{ CURLE_WRITE_ERROR, BID_OUTCOME_REFUSED, false, "came in an encoding that libcurl does not decode" },
	{ CURLE_WEIRD_SERVER_REPLY, BID_OUTCOME_UNAVAILABLE, true, "malformed response:" },
	{ CURLE_OUT_OF_MEMORY, BID_OUTCOME_FAILED, false, "out of memory" },
};

/* May a retry succeed? A server that refuses connections may be restarting, if it ever responded. */
static bool may_come_back(const struct bid_transfer *transfer, const struct code *row)
{
	return row->retry && (row->code != CURLE_COULDNT_CONNECT || transfer->server->responded_at > 0);
}

/* Returns the error text of the system, else of libcurl. */
static const char *describe_error(struct bid_transfer *transfer, CURLcode code, char *buf, size_t size)
{
	const char *words;
	long error = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &error);
	if (error && code != CURLE_OPERATION_TIMEDOUT)
		return strerror_r((int)error, buf, size);
	/* libcurl repeats bytes of the server */
	bid_response_plain(transfer->curl_error);
	words = code == CURLE_COULDNT_RESOLVE_PROXY ? strrchr(transfer->curl_error, ' ') : NULL;
	if (words)
		return words + 1;
	return transfer->curl_error[0] ? transfer->curl_error : curl_easy_strerror(code);
}

/* Is a header line too long for libcurl? libcurl's limit is above BID_RESPONSE_HEADER_MAX. */
static bool is_endless_line(const struct bid_transfer *transfer, CURLcode code)
{
#if LIBCURL_VERSION_NUM >= 0x080600
	if (code == CURLE_TOO_LARGE)
		return true;
#endif
	return code == CURLE_OUT_OF_MEMORY && (transfer->state == BID_TRANSFER_WAITING || transfer->state == BID_TRANSFER_LATE);
}

static void classify_code(struct bid_transfer *transfer, CURLcode code)
{
	char words[CURL_ERROR_SIZE], received[64];
	const char *why = describe_error(transfer, code, words, sizeof(words));

	if (code == CURLE_OPERATION_TIMEDOUT && transfer->state == BID_TRANSFER_BODY) {
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "too slow: less than %ld bytes a second for %ld s",
			     BID_SLOWEST, bid_slow_s(bid_transfer_config(transfer)));
		return;
	}
	if (code == CURLE_UNSUPPORTED_PROTOCOL && transfer->state == BID_TRANSFER_CONNECTING) {
		bid_classify(transfer, BID_OUTCOME_REFUSED, false, "redirected to a place that bidfs does not follow");
		return;
	}
	if (is_endless_line(transfer, code)) {
		bid_classify(transfer, BID_OUTCOME_REFUSED, false, "header above %d bytes", BID_RESPONSE_HEADER_MAX);
		return;
	}
	for (const struct code *row = codes; row < codes + sizeof(codes) / sizeof(codes[0]); row++) {
		bool more = row->words[strlen(row->words) - 1] == ':';

		if (row->code != code)
			continue;
		/* the address may belong to a proxy, or to the target of a redirect */
		if (transfer->peer[0] && (code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT))
			bid_classify(transfer, row->outcome, may_come_back(transfer, row), "could not connect to %s: %s",
				     transfer->peer, why);
		else
			bid_classify(transfer, row->outcome, may_come_back(transfer, row), "%s%s%s", row->words, more ? " " : "",
				     more ? why : "");
		return;
	}
	format_amount(transfer, received, sizeof(received));
	if (code == CURLE_PARTIAL_FILE)
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "cut short: %s", received);
	else if (transfer->state == BID_TRANSFER_BODY)
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "broke off after %s: %s", received, why);
	else
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "broke off without a response: %s", why);
}

bool bid_classify_ends_with_connection(const struct bid_transfer *transfer)
{
	long version = CURL_HTTP_VERSION_NONE;

	curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_VERSION, &version);
	return version <= CURL_HTTP_VERSION_1_1 && !transfer->response.chunked;
}

/* Classify a body without a marked end, which is no failure of the server. */
static void classify_open_end(struct bid_transfer *transfer)
{
	char received[64];

	bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "%s, which may be incomplete",
		     format_amount(transfer, received, sizeof(received)));
	transfer->end.health = BID_HEALTH_HEALTHY;
}

/* Does the server declare the source file as empty? An empty body alone may come from a cache or from a failing server. */
static bool declares_empty(const struct bid_transfer *transfer)
{
	return transfer->artifact.kind == BID_KIND_SOURCE && transfer->response.debuginfod_size == 0;
}

static void classify_empty(struct bid_transfer *transfer)
{
	bid_classify(transfer, BID_OUTCOME_REFUSED, false, "no bytes, which may be incomplete");
}

/* Classify a response that libcurl reports as complete. For libcurl, a closed connection ends a body without a length. */
static void classify_response(struct bid_transfer *transfer)
{
	uint64_t size = bid_response_size(&transfer->response);
	bool is_body = bid_response_has_artifact(&transfer->response);
	/* with an encoding and Content-Length, libcurl checked the length */
	bool open = size == BID_SIZE_UNKNOWN && transfer->response.content_length == BID_SIZE_UNKNOWN;
	char received[64];

	if (is_body && size != BID_SIZE_UNKNOWN && transfer->received != size)
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "cut short: %s",
			     format_amount(transfer, received, sizeof(received)));
	else if (is_body && open && !bid_kind_is_elf(transfer->artifact.kind) && bid_classify_ends_with_connection(transfer))
		classify_open_end(transfer);
	else if (is_body && transfer->received == 0 && bid_kind_has_subpath(transfer->artifact.kind) && !declares_empty(transfer))
		classify_empty(transfer);
	else
		bid_classify_status(transfer);
	/* the header callback refuses an unrequested part: a 206 that gets here counts as 200 */
	if (transfer->end.outcome == BID_OUTCOME_REFUSED && transfer->response.status == 206)
		transfer->end.outcome = BID_OUTCOME_FOUND;
	/* the broker checks the build-id */
	if (transfer->end.outcome == BID_OUTCOME_FOUND && bid_kind_is_elf(transfer->artifact.kind))
		transfer->end.health = BID_HEALTH_NONE;
}

void bid_classify_end(struct bid_transfer *transfer, CURLcode code)
{
	if (transfer->end.outcome != BID_OUTCOME_NONE)
		return;
	/* for an error, the header is enough */
	if (code == CURLE_OK || (transfer->state == BID_TRANSFER_BODY && !bid_response_has_artifact(&transfer->response)))
		classify_response(transfer);
	else
		classify_code(transfer, code);
}

/* Classify a late response, which is no further failure: bid_http_server_note_late() counts it. */
static void classify_late(struct bid_transfer *transfer)
{
	int64_t waited = transfer->deadline.at_ms - transfer->sent_at;

	/* no retry, which would be late again */
	bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "no response within %g s", (double)waited / 1000);
	transfer->end.health = BID_HEALTH_NONE;
}

static void classify_stalled_body(struct bid_transfer *transfer)
{
	char received[64];

	if (bid_response_has_artifact(&transfer->response))
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "stalled after %s",
			     format_amount(transfer, received, sizeof(received)));
	else
		bid_classify_status(transfer);
}

void bid_classify_deadline(struct bid_transfer *transfer, int64_t now)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);

	if (now >= transfer->ends_at) {
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "not done within %g s", config->max_time_ms / 1000.0);
		/* no failure of the server: the limit is local, and bytes arrive */
		if (transfer->state == BID_TRANSFER_BODY)
			transfer->end.health = BID_HEALTH_NONE;
		return;
	}

	switch (transfer->state) {
	case BID_TRANSFER_CONNECTING:
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "could not connect within %g s",
			     config->connect_ms / 1000.0);
		break;
	case BID_TRANSFER_WAITING:
	case BID_TRANSFER_LATE:
		classify_late(transfer);
		break;
	case BID_TRANSFER_BODY:
		classify_stalled_body(transfer);
		break;
	default:
		break;
	}
}

bool bid_classify_wrong_part(struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;
	const struct bid_resume *resume = &transfer->resume;

	if (resume->offset == 0)
		bid_classify_status(transfer);
	else if (response->part_start != resume->offset || response->part_size != resume->size || response->encoded ||
		 (response->etag[0] && strcmp(response->etag, resume->etag) != 0))
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "sent another part than requested");
	return transfer->end.outcome != BID_OUTCOME_NONE;
}

static bool is_for_page(const struct bid_transfer *transfer)
{
	const char *dot = strrchr(transfer->url, '.');

	return transfer->artifact.kind == BID_KIND_SOURCE && dot && (strcasecmp(dot, ".html") == 0 || strcasecmp(dot, ".htm") == 0);
}

bool bid_classify_wrong_text(struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;

	if (!bid_kind_has_subpath(transfer->artifact.kind))
		return false;
	if (response->is_page && !is_for_page(transfer))
		bid_classify(transfer, BID_OUTCOME_REJECTED, false, "a web page");
	else if (bid_response_size(response) == 0 && !declares_empty(transfer))
		classify_empty(transfer);
	else if (transfer->artifact.kind == BID_KIND_SOURCE && bid_response_contradicts_itself(response))
		bid_classify(transfer, BID_OUTCOME_REJECTED, false, "announced as %" PRIu64 " bytes, and as %" PRIu64,
			     response->content_length, response->debuginfod_size);
	return transfer->end.outcome != BID_OUTCOME_NONE;
}
