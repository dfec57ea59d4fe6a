// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bid/error.h>

#include "base/clock.h"
#include "fetch/file_tree.h"
#include "fetch/network_thread.h"
#include "fetch/url.h"

#define SLOWEST		   1024L /* bytes of a body a second */
#define CONNECT_GRACE_MS   250 /* lets libcurl's timer, with its better message, end first */
#define ERROR_BODY_MAX	   (16 * 1024) /* limit; reading less would cost the connection */
#define IDLE_MAX_S	   30L /* a connection idle for longer may have been dropped, for example by a firewall */
#define REDIRECTS_MAX	   5L
#define RETRY_AFTER_SANE_S 86400 /* a longer Retry-After counts as this */

/* Returns the time below SLOWEST that ends a body, in whole seconds for CURLOPT_LOW_SPEED_TIME. */
static long slow_s(const struct bid_fetch_config *config)
{
	return (config->first_byte_ms + 999L) / 1000;
}

/* Set the state CONNECTING: at the begin of a request, or after a redirect. */
static void begin_connect(struct bid_transfer *transfer)
{
	transfer->state = BID_TRANSFER_CONNECTING;
	transfer->peer[0] = '\0';
	bid_transfer_set_deadline(transfer, bid_clock_ms() + bid_transfer_config(transfer)->connect_ms + CONNECT_GRACE_MS);
}

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

/* Set the end. */
__attribute__((format(printf, 4, 5))) static void classify(struct bid_transfer *transfer, enum bid_outcome outcome, bool retry,
							   const char *format, ...)
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

/* Set the end by the response's status. */
static void classify_status(struct bid_transfer *transfer)
{
	struct bid_transfer_end *end = &transfer->end;

	/* the file has changed: request the whole */
	if (transfer->resume.offset && transfer->response.status == 416) {
		classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "HTTP 416: the file has changed");
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

/* Set the end by the receiver's @error. */
static void classify_receiver(struct bid_transfer *transfer, int error)
{
	char words[128];

	if (error == -EBADMSG)
		classify(transfer, BID_OUTCOME_REJECTED, false, "another artifact than requested");
	else
		classify(transfer, BID_OUTCOME_FAILED, false, "could not keep it: %s", strerror_r(-error, words, sizeof(words)));
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
static const struct ending {
	CURLcode code;
	enum bid_outcome outcome;
	bool retry;
	const char *words; /* whole text; behind a colon at its end comes the reason */
} endings[] = {
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
static bool may_come_back(const struct bid_transfer *transfer, const struct ending *ending)
{
	return ending->retry && (ending->code != CURLE_COULDNT_CONNECT || transfer->server->responded_at > 0);
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
		classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "too slow: less than %ld bytes a second for %ld s", SLOWEST,
			 slow_s(bid_transfer_config(transfer)));
		return;
	}
	if (code == CURLE_UNSUPPORTED_PROTOCOL && transfer->state == BID_TRANSFER_CONNECTING) {
		classify(transfer, BID_OUTCOME_REFUSED, false, "redirected to a place that bidfs does not follow");
		return;
	}
	if (is_endless_line(transfer, code)) {
		classify(transfer, BID_OUTCOME_REFUSED, false, "header above %d bytes", BID_RESPONSE_HEADER_MAX);
		return;
	}
	for (const struct ending *ending = endings; ending < endings + sizeof(endings) / sizeof(endings[0]); ending++) {
		bool more = ending->words[strlen(ending->words) - 1] == ':';

		if (ending->code != code)
			continue;
		/* the address may belong to a proxy, or to the target of a redirect */
		if (transfer->peer[0] && (code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT))
			classify(transfer, ending->outcome, may_come_back(transfer, ending), "could not connect to %s: %s",
				 transfer->peer, why);
		else
			classify(transfer, ending->outcome, may_come_back(transfer, ending), "%s%s%s", ending->words,
				 more ? " " : "", more ? why : "");
		return;
	}
	format_amount(transfer, received, sizeof(received));
	if (code == CURLE_PARTIAL_FILE)
		classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "cut short: %s", received);
	else if (transfer->state == BID_TRANSFER_BODY)
		classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "broke off after %s: %s", received, why);
	else
		classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "broke off without a response: %s", why);
}

/* Does the body end with the connection (RFC 9112, 8)? Then its completeness is unknown. HTTP/2 and chunks mark the end. */
static bool ends_with_connection(const struct bid_transfer *transfer)
{
	long version = CURL_HTTP_VERSION_NONE;

	curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_VERSION, &version);
	return version <= CURL_HTTP_VERSION_1_1 && !transfer->response.chunked;
}

/* Classify a body without a marked end, which is no failure of the server. */
static void classify_open_end(struct bid_transfer *transfer)
{
	char received[64];

	classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "%s, which may be incomplete",
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
	classify(transfer, BID_OUTCOME_REFUSED, false, "no bytes, which may be incomplete");
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
		classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "cut short: %s",
			 format_amount(transfer, received, sizeof(received)));
	else if (is_body && open && !bid_kind_is_elf(transfer->artifact.kind) && ends_with_connection(transfer))
		classify_open_end(transfer);
	else if (is_body && transfer->received == 0 && bid_kind_has_subpath(transfer->artifact.kind) && !declares_empty(transfer))
		classify_empty(transfer);
	else
		classify_status(transfer);
	/* the header callback refuses an unrequested part: a 206 that gets here counts as 200 */
	if (transfer->end.outcome == BID_OUTCOME_REFUSED && transfer->response.status == 206)
		transfer->end.outcome = BID_OUTCOME_FOUND;
	/* the broker checks the build-id */
	if (transfer->end.outcome == BID_OUTCOME_FOUND && bid_kind_is_elf(transfer->artifact.kind))
		transfer->end.health = BID_HEALTH_NONE;
}

void bid_transfer_classify_end(struct bid_transfer *transfer, CURLcode code)
{
	if (transfer->end.outcome != BID_OUTCOME_NONE)
		return;
	/* for an error, the header is enough */
	if (code == CURLE_OK || (transfer->state == BID_TRANSFER_BODY && !bid_response_has_artifact(&transfer->response)))
		classify_response(transfer);
	else
		classify_code(transfer, code);
}

/* Classify a late response. The breaker counts it, and the transfer continues up to answer_ms. */
static void classify_late(struct bid_transfer *transfer, int64_t now)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);
	int64_t waited = transfer->deadline.at_ms - transfer->sent_at;

	/* no retry, which would be late again */
	classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "no response within %g s", (double)waited / 1000);
	bid_http_server_note_late(transfer->server, transfer, now);
	transfer->end.health = BID_HEALTH_NONE;
	if (waited >= config->answer_ms)
		return;
	transfer->end = (struct bid_transfer_end){ 0 };
	waited += config->first_byte_ms;
	bid_transfer_set_deadline(transfer, transfer->sent_at + (waited < config->answer_ms ? waited : config->answer_ms));
}

static void classify_stalled_body(struct bid_transfer *transfer)
{
	char received[64];

	if (bid_response_has_artifact(&transfer->response))
		classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "stalled after %s",
			 format_amount(transfer, received, sizeof(received)));
	else
		classify_status(transfer);
}

void bid_transfer_classify_deadline(struct bid_transfer *transfer, int64_t now)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);

	if (transfer->end.outcome != BID_OUTCOME_NONE)
		return;
	if (now >= transfer->ends_at) {
		classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "not done within %g s", config->max_time_ms / 1000.0);
		/* no failure of the server: the limit is local, and bytes arrive */
		if (transfer->state == BID_TRANSFER_BODY)
			transfer->end.health = BID_HEALTH_NONE;
		return;
	}

	switch (transfer->state) {
	case BID_TRANSFER_CONNECTING:
		classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "could not connect within %g s", config->connect_ms / 1000.0);
		break;
	case BID_TRANSFER_WAITING:
	case BID_TRANSFER_LATE:
		classify_late(transfer, now);
		break;
	case BID_TRANSFER_BODY:
		classify_stalled_body(transfer);
		break;
	default:
		break;
	}
}

/* Make the header of a request, with the secret lines for @home, the server itself, alone. */
static int make_headers(const struct bid_transfer *transfer, bool home, struct curl_slist **ret_headers)
{
	const struct curl_slist *secret = home ? transfer->server->fetch->secrets : NULL;
	uint64_t max_size = bid_transfer_config(transfer)->max_size;
	char line[BID_RESPONSE_ETAG_MAX + 32];
	struct curl_slist *headers = NULL;
	int r = bid_fetch_add_header(&headers, "Accept-Encoding:");

	if (r == 0 && max_size) {
		snprintf(line, sizeof(line), "X-DEBUGINFOD-MAXSIZE: %" PRIu64, max_size);
		r = bid_fetch_add_header(&headers, line);
	}
	if (r == 0 && transfer->resume.offset) {
		snprintf(line, sizeof(line), "If-Range: %s", transfer->resume.etag);
		r = bid_fetch_add_header(&headers, line);
	}
	for (; r == 0 && secret; secret = secret->next)
		r = bid_fetch_add_header(&headers, secret->data);
	if (r < 0) {
		curl_slist_free_all(headers);
		return r;
	}
	*ret_headers = headers;
	return 0;
}

/* Set the header of the next request. Returns 0 or -ENOMEM. */
static int set_headers(struct bid_transfer *transfer)
{
	struct curl_slist *headers = NULL;
	char *url = NULL;
	int r;

	if (transfer->redirects > 0)
		curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &url);
	r = make_headers(transfer, !url || bid_url_same_server(transfer->url, url), &headers);
	if (r < 0)
		return r;
	if (curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, headers) != CURLE_OK)
		r = -ENOMEM;
	/* libcurl does not copy the list */
	curl_slist_free_all(transfer->headers);
	transfer->headers = headers;
	return r;
}

/* Wait for the response to a request. */
static void await_response(struct bid_transfer *transfer)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);
	bool known = transfer->server->responded_at > 0;

	transfer->state = BID_TRANSFER_WAITING;
	transfer->sent_at = bid_clock_ms();
	bid_transfer_set_deadline(transfer, transfer->sent_at + (known ? config->first_byte_ms : config->first_contact_ms));
}

/* Called before each request, also before that to the target of a redirect. */
static int on_request(void *user, char *primary_ip, char *local_ip, int primary_port, int local_port)
{
	struct bid_transfer *transfer = user;

	if (transfer->redirects > 0 && set_headers(transfer) < 0) {
		classify(transfer, BID_OUTCOME_FAILED, false, "out of memory");
		return CURL_PREREQFUNC_ABORT;
	}
	await_response(transfer);
	return CURL_PREREQFUNC_OK;
}

/* Accept the requested part of a body. Returns 0, or -1 with the end set. */
static int begin_part(struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;
	const struct bid_resume *resume = &transfer->resume;

	if (resume->offset == 0) {
		classify_status(transfer);
		return -1;
	}
	if (response->part_start != resume->offset || response->part_size != resume->size || response->encoded ||
	    (response->etag[0] && strcmp(response->etag, resume->etag) != 0)) {
		classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "sent another part than requested");
		return -1;
	}
	transfer->received = resume->offset;
	return 0;
}

static bool is_for_page(const struct bid_transfer *transfer)
{
	const char *dot = strrchr(transfer->url, '.');

	return transfer->artifact.kind == BID_KIND_SOURCE && dot && (strcasecmp(dot, ".html") == 0 || strcasecmp(dot, ".htm") == 0);
}

/*
 * Refuse a source file or a section if the header contradicts it, and set the end. The X-DEBUGINFOD-SIZE of a section may be
 * that of the whole file, which elfutils' server has just unpacked.
 */
static bool refuses_text(struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;

	if (!bid_kind_has_subpath(transfer->artifact.kind))
		return false;
	if (response->is_page && !is_for_page(transfer))
		classify(transfer, BID_OUTCOME_REJECTED, false, "a web page");
	else if (bid_response_size(response) == 0 && !declares_empty(transfer))
		classify_empty(transfer);
	else if (transfer->artifact.kind == BID_KIND_SOURCE && bid_response_contradicts_itself(response))
		classify(transfer, BID_OUTCOME_REJECTED, false, "announced as %" PRIu64 " bytes, and as %" PRIu64,
			 response->content_length, response->debuginfod_size);
	return transfer->end.outcome != BID_OUTCOME_NONE;
}

/* Accept the whole body. Returns 0, or non-zero with the end set. */
static int begin_whole(struct bid_transfer *transfer)
{
	int r;

	if (refuses_text(transfer))
		return -1;
	r = transfer->receiver.header(transfer->user, bid_response_size(&transfer->response));
	if (r)
		classify_receiver(transfer, r);
	return r;
}

/* Decide on the body after its header. Returns 0 to accept it. */
static int begin_body(struct bid_transfer *transfer)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);
	int64_t now = bid_clock_ms();
	int r = 0;

	/* see refuses_text(); the section's end is marked in another way */
	if (transfer->artifact.kind == BID_KIND_SECTION && !ends_with_connection(transfer))
		transfer->response.debuginfod_size = BID_SIZE_UNKNOWN;
	bid_http_server_note_response(transfer->server, transfer, now);
	if (transfer->response.is_redirect) {
		transfer->redirects++;
		begin_connect(transfer);
		return 0;
	}
	transfer->state = BID_TRANSFER_BODY;
	if (transfer->response.status == 206)
		r = begin_part(transfer);
	else if (transfer->response.status == 200)
		r = begin_whole(transfer);
	bid_transfer_set_deadline(transfer, now + config->stall_ms);
	/* only from the header on, because the server may unpack the file before */
	curl_easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_LIMIT, SLOWEST);
	curl_easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_TIME, slow_s(config));
	return r;
}

/* Take the complete header of a response from libcurl. */
static void read_header(struct bid_transfer *transfer, unsigned status)
{
	struct curl_header *field = NULL;
	curl_off_t modified = 0;

	bid_response_init(&transfer->response, status);
	while ((field = curl_easy_nextheader(transfer->easy, CURLH_HEADER, -1, field)))
		bid_response_field(&transfer->response, field->name, field->value);
	curl_easy_getinfo(transfer->easy, CURLINFO_FILETIME_T, &modified);
	/* a federating server may send 1969 */
	transfer->response.modified = modified > 0 ? modified : 0;
}

/* Called for each line of a header, and for the empty line behind it. */
static size_t on_header(char *line, size_t unit, size_t n, void *user)
{
	struct bid_transfer *transfer = user;
	size_t len = unit * n;
	long status = 0;

	/* libcurl keeps all lines in memory */
	transfer->header_bytes += len;
	if (transfer->header_bytes > BID_RESPONSE_HEADER_MAX) {
		classify(transfer, BID_OUTCOME_REFUSED, false, "header above %d bytes", BID_RESPONSE_HEADER_MAX);
		return 0;
	}
	/* trailers, also of a redirect */
	if (transfer->state == BID_TRANSFER_BODY || transfer->state == BID_TRANSFER_CONNECTING)
		return len;
	if (line[0] != '\r' && line[0] != '\n')
		return len;
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	/* an interim response; but no HTTP follows an unrequested upgrade */
	if (status / 100 == 1 && status != 101)
		return len;
	read_header(transfer, (unsigned)status);
	return begin_body(transfer) == 0 ? len : 0;
}

/* Pass bytes to the receiver. Returns 0 if more may follow. */
static int pass_body(struct bid_transfer *transfer, const char *data, size_t len)
{
	uint64_t size = bid_response_size(&transfer->response);
	int r;

	if (size != BID_SIZE_UNKNOWN && transfer->received > size) {
		classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "more than the announced %" PRIu64 " bytes", size);
		return -1;
	}
	r = transfer->receiver.body(transfer->user, data, len);
	if (r && r != -EAGAIN)
		classify_receiver(transfer, r);
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
		classify(transfer, BID_OUTCOME_REFUSED, false, "malformed response");
		return 0;
	}
	transfer->received += len;
	bid_transfer_set_deadline(transfer, bid_clock_ms() + bid_transfer_config(transfer)->stall_ms);
	if (bid_response_has_artifact(&transfer->response)) {
		r = pass_body(transfer, data, len);
		return r == 0 ? len : r == -EAGAIN ? pause_body(transfer, len) : 0;
	}

	bid_response_error_body(&transfer->response, data, len);
	if (transfer->received <= ERROR_BODY_MAX)
		return len;
	classify_status(transfer);
	return 0;
}

bool bid_transfer_read_tree(struct bid_transfer *transfer)
{
	struct bid_response *response = &transfer->response;
	char piece[64 * 1024];
	size_t taken;
	ssize_t n;

	if (transfer->fd < 0 || transfer->paused)
		return false;
	if (transfer->state != BID_TRANSFER_BODY) {
		n = recv(transfer->fd, response, sizeof(*response), MSG_DONTWAIT);
		if (n < 0 || (n > 0 && begin_body(transfer) == 0))
			return false;
	} else {
		/* a receiver that pauses gets the same bytes again */
		n = recv(transfer->fd, piece, sizeof(piece), MSG_DONTWAIT | MSG_PEEK);
		taken = n > 0 ? on_body(piece, 1, (size_t)n, transfer) : 0;
		if (taken > 0 && taken != CURL_WRITEFUNC_PAUSE)
			recv(transfer->fd, piece, taken, MSG_DONTWAIT);
		if (n < 0 || taken > 0)
			return false;
	}
	bid_transfer_classify_end(transfer, CURLE_OK);
	return true;
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

int bid_transfer_make_template(const struct bid_fetch_config *config, CURL **ret_template)
{
	CURL *easy = curl_easy_init();
	bool failed;

	/* only options with a text can fail, and without @easy all fail */
	failed = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK;
	/* decodes an encoding, although set_headers() requests none: an encoded body has no size and no parts */
	failed |= curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "") != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "bidfs/" BID_VERSION " (debuginfod client)") != CURLE_OK;
	if (config->ca_file)
		failed |= curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file) != CURLE_OK;
	if (config->ca_directory)
		failed |= curl_easy_setopt(easy, CURLOPT_CAPATH, config->ca_directory) != CURLE_OK;
	if (config->netrc_file) {
		curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
		failed |= curl_easy_setopt(easy, CURLOPT_NETRC_FILE, config->netrc_file) != CURLE_OK;
	}
	/* libcurl keeps user name and password from other servers, and set_headers() the secret headers */
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(easy, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)config->connect_ms);
	/* the path of a source file comes from the compiler, unnormalised */
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_FILETIME, 1L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_MAX_S);
	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L * 1024);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* the network thread does not wait for getaddrinfo(3) at the end of a request */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	*ret_template = easy;
	return failed ? -ENOMEM : 0;
}

/* Make the handle of @transfer. Returns 0 or -ENOMEM. */
static int make_handle(struct bid_transfer *transfer)
{
	bool https = strncasecmp(transfer->url, "https:", 6) == 0;
	CURL *easy = curl_easy_duphandle(transfer->server->fetch->template);

	transfer->easy = easy;
	curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->curl_error);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
	/* HTTP/2 needs TLS here; a libcurl without HTTP/2 refuses the option, and works without it */
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)(https ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, https ? 1L : 0L);
	return curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https") == CURLE_OK ? 0 : -ENOMEM;
}

static int send_request(struct bid_transfer *transfer)
{
	char range[32];
	int r = set_headers(transfer);

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
	if (!has_part || size == BID_SIZE_UNKNOWN) {
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

/* Let a thread of the tree respond. */
static void request_file(struct bid_transfer *transfer)
{
	int r = bid_file_tree_connect(transfer->server->tree, &transfer->artifact);

	if (r >= 0) {
		transfer->fd = r;
		await_response(transfer);
		return;
	}
	if (r == -EBUSY)
		classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "the file system does not respond to earlier requests");
	else
		classify(transfer, BID_OUTCOME_FAILED, false, "%s", bid_strerror(r));
	bid_transfer_set_deadline(transfer, 0);
}

/* Returns 0 or -ENOMEM. */
static int request_by_http(struct bid_transfer *transfer)
{
	bool fresh = transfer->requests > 1 || transfer->trial;
	int r = transfer->easy ? 0 : make_handle(transfer);

	/* the cause of the last failure may also have broken the idle connections */
	if (r == 0 && curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L) != CURLE_OK)
		r = -ENOMEM;
	return r == 0 ? send_request(transfer) : r;
}

void bid_transfer_begin(struct bid_transfer *transfer)
{
	unsigned max_time_ms = bid_transfer_config(transfer)->max_time_ms;

	if (transfer->requests++ == 0)
		transfer->ends_at = max_time_ms ? bid_clock_ms() + max_time_ms : INT64_MAX;
	transfer->counted++;
	bid_response_init(&transfer->response, 0);
	transfer->header_bytes = 0;
	transfer->redirects = 0;
	transfer->received = 0;
	transfer->end = (struct bid_transfer_end){ 0 };
	transfer->curl_error[0] = '\0';
	begin_connect(transfer);

	if (transfer->server->tree) {
		request_file(transfer);
	} else if (request_by_http(transfer) < 0) {
		classify(transfer, BID_OUTCOME_FAILED, false, "out of memory");
		bid_transfer_set_deadline(transfer, 0);
	}
}

char *bid_transfer_redirect(const struct bid_transfer *transfer)
{
	char *url = NULL, *redirect;

	if (transfer->redirects == 0 || curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK || !url)
		return NULL;
	redirect = bid_fetch_url_shown(url);
	/* a query may contain a storage service's signature */
	if (redirect)
		redirect[strcspn(redirect, "?#")] = '\0';
	return redirect;
}

void bid_transfer_stop(struct bid_transfer *transfer)
{
	if (transfer->easy)
		curl_multi_remove_handle(transfer->server->fetch->multi, transfer->easy);
	if (transfer->fd >= 0)
		close(transfer->fd);
	transfer->fd = -1;
}

int64_t bid_transfer_retry_after(const struct bid_transfer *transfer)
{
	curl_off_t seconds = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &seconds);
	return seconds <= 0 ? 0 : seconds < RETRY_AFTER_SANE_S ? seconds : RETRY_AFTER_SANE_S;
}

int bid_transfer_new(struct bid_http_server *server, const struct bid_artifact *artifact, const struct bid_receiver *receiver,
		     void *user, struct bid_transfer **ret_transfer)
{
	struct bid_transfer *transfer;
	int r;

	transfer = calloc(1, sizeof(*transfer));
	if (!transfer)
		return -ENOMEM;
	transfer->server = server;
	transfer->receiver = *receiver;
	transfer->user = user;
	transfer->artifact = bid_artifact_copy(artifact);
	transfer->fd = -1;
	bid_response_init(&transfer->response, 0);
	r = bid_url_for_request(server->url, artifact, &transfer->url);
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
	bid_artifact_release(&transfer->artifact);
	free(transfer);
}
