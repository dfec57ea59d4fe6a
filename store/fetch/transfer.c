// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "fetch/network.h"
#include "fetch/url.h"

#define REDIRECTS_MAX		5
#define ERROR_BODY_MAX		(16 * 1024)	/* reading less would cost the connection, reading more is a waste */
#define SLOWEST			1024		/* bytes a second, on average over first_byte_ms */
#define CONNECT_GRACE_MS	250		/* so that libcurl's own timer, which has the better words, comes first */

int64_t bid_transfer_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static const struct bid_fetch_config *config_of(const struct bid_transfer *transfer)
{
	return &transfer->server->fetch->config;
}

__attribute__((format(printf, 4, 5))) static void judge(struct bid_transfer *transfer, enum bid_outcome outcome, bool retry,
							const char *format, ...)
{
	struct bid_judgement *judgement = &transfer->judgement;
	va_list arguments;

	judgement->outcome = outcome;
	judgement->retry = retry;
	judgement->broken = outcome == BID_OUTCOME_UNREACHABLE;
	va_start(arguments, format);
	vsnprintf(judgement->text, sizeof(judgement->text), format, arguments);
	va_end(arguments);
}

static void judge_status(struct bid_transfer *transfer)
{
	struct bid_judgement *judgement = &transfer->judgement;

	judgement->broken = false;
	judgement->outcome = bid_response_outcome(&transfer->response, &judgement->retry);
	bid_response_describe(&transfer->response, judgement->text, sizeof(judgement->text));
}

static void judge_receiver(struct bid_transfer *transfer, int error)
{
	char words[128];

	if (error == -EBADMSG)
		judge(transfer, BID_OUTCOME_REJECTED, false, "not what was asked for");
	else
		judge(transfer, BID_OUTCOME_FAILED, false, "could not keep it: %s", strerror_r(-error, words, sizeof(words)));
}

/* "1234 of 9999 bytes", as far as it is known. */
static const char *amount(const struct bid_transfer *transfer, char *buf, size_t size)
{
	uint64_t whole = bid_response_size(&transfer->response);

	if (whole == BID_SIZE_UNKNOWN)
		snprintf(buf, size, "%" PRIu64 " bytes", transfer->received);
	else
		snprintf(buf, size, "%" PRIu64 " of %" PRIu64 " bytes", transfer->received, whole);
	return buf;
}

static int on_request(void *user, char *primary_ip, char *local_ip, int primary_port, int local_port)
{
	struct bid_transfer *transfer = user;

	transfer->phase = BID_PHASE_WAITING;
	transfer->deadline = bid_transfer_clock() + config_of(transfer)->first_byte_ms;
	return CURL_PREREQFUNC_OK;
}

static void begin_connecting(struct bid_transfer *transfer)
{
	transfer->phase = BID_PHASE_CONNECTING;
	transfer->deadline = bid_transfer_clock() + config_of(transfer)->connect_ms + CONNECT_GRACE_MS;
}

static void set_body_deadline(struct bid_transfer *transfer)
{
	transfer->deadline = transfer->stall_at < transfer->window_end ? transfer->stall_at : transfer->window_end;
}

/* The speed is measured from @now on. */
static void begin_window(struct bid_transfer *transfer, int64_t now)
{
	transfer->window_end = now + config_of(transfer)->first_byte_ms;
	transfer->window_received = transfer->received;
	set_body_deadline(transfer);
}

/* Returns 0 if the body may come. */
static int begin_body(struct bid_transfer *transfer)
{
	uint64_t size = bid_response_size(&transfer->response), max_size = config_of(transfer)->max_size;
	int64_t now = bid_transfer_clock();
	int r;

	transfer->phase = BID_PHASE_BODY;
	transfer->stall_at = now + config_of(transfer)->stall_ms;
	begin_window(transfer, now);
	if (transfer->response.status != 200)
		return 0;

	if (transfer->response.encoded) {
		judge(transfer, BID_OUTCOME_REFUSED, false, "came in an encoding that was not asked for");
		return -1;
	}
	if (max_size && size != BID_SIZE_UNKNOWN && size > max_size) {
		judge(transfer, BID_OUTCOME_TOO_LARGE, false, "%" PRIu64 " bytes, the limit is %" PRIu64, size, max_size);
		return -1;
	}
	transfer->began = true;
	r = transfer->receiver.head(transfer->user, size);
	if (r)
		judge_receiver(transfer, r);
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
		judge(transfer, BID_OUTCOME_REFUSED, false, "header above %d bytes", BID_RESPONSE_HEADER_MAX);
		return 0;
	}
	return len;
}

/* Returns 0 if more of the body may come. */
static int take_body(struct bid_transfer *transfer, const char *data, size_t len)
{
	uint64_t size = bid_response_size(&transfer->response), max_size = config_of(transfer)->max_size;
	int r;

	if (max_size && transfer->received > max_size) {
		judge(transfer, BID_OUTCOME_TOO_LARGE, false, "more than the limit of %" PRIu64 " bytes", max_size);
		return -1;
	}
	if (size != BID_SIZE_UNKNOWN && transfer->received > size) {
		judge(transfer, BID_OUTCOME_UNREACHABLE, true, "more than the announced %" PRIu64 " bytes", size);
		return -1;
	}
	r = transfer->receiver.body(transfer->user, data, len);
	if (r)
		judge_receiver(transfer, r);
	return r;
}

static size_t on_body(char *data, size_t unit, size_t n, void *user)
{
	struct bid_transfer *transfer = user;
	size_t len = unit * n;

	if (len == 0)
		return 0;
	transfer->received += len;
	transfer->stall_at = bid_transfer_clock() + config_of(transfer)->stall_ms;
	set_body_deadline(transfer);
	if (transfer->response.status == 200)
		return take_body(transfer, data, len) == 0 ? len : 0;

	bid_response_error_body(&transfer->response, data, len);
	if (transfer->received <= ERROR_BODY_MAX)
		return len;
	judge_status(transfer);
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
	failed |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)config_of(transfer)->connect_ms) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_FAILONERROR, 0L) != CURLE_OK;
	failed |= curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L) != CURLE_OK;
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

	if (!config_of(transfer)->max_size)
		return 0;
	snprintf(line, sizeof(line), "X-DEBUGINFOD-MAXSIZE: %" PRIu64, config_of(transfer)->max_size);
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
	transfer->began = false;
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
		judge(transfer, BID_OUTCOME_FAILED, false, "out of memory");
		transfer->deadline = 0;
	}
}

void bid_transfer_stop(struct bid_transfer *transfer)
{
	if (transfer->easy)
		curl_multi_remove_handle(transfer->server->fetch->multi, transfer->easy);
}

/* What ends a try before, or instead of, an answer. What is not here is a connection that broke. */
static const struct ending {
	CURLcode code;
	enum bid_outcome outcome;
	bool retry;
	const char *words;	/* before the reason; or all there is to say, without a colon at its end */
} endings[] = {
	/* a server that cannot be found is not found by asking again at once, and to wait for it is paid for in full each time */
	{ CURLE_COULDNT_RESOLVE_PROXY, BID_OUTCOME_UNREACHABLE, false, "could not resolve the proxy" },
	{ CURLE_COULDNT_RESOLVE_HOST, BID_OUTCOME_UNREACHABLE, false, "could not resolve the name" },
	{ CURLE_OPERATION_TIMEDOUT, BID_OUTCOME_UNREACHABLE, false, "could not connect:" },
	{ CURLE_COULDNT_CONNECT, BID_OUTCOME_UNREACHABLE, true, "could not connect:" },
	{ CURLE_SSL_CONNECT_ERROR, BID_OUTCOME_UNREACHABLE, true, "no secure connection:" },
	{ CURLE_PEER_FAILED_VERIFICATION, BID_OUTCOME_UNREACHABLE, false, "no secure connection:" },
	{ CURLE_SSL_CACERT_BADFILE, BID_OUTCOME_UNREACHABLE, false, "no secure connection:" },
	{ CURLE_SSL_ISSUER_ERROR, BID_OUTCOME_UNREACHABLE, false, "no secure connection:" },
	{ CURLE_UNSUPPORTED_PROTOCOL, BID_OUTCOME_REFUSED, false, "redirected to where we do not follow" },
	{ CURLE_URL_MALFORMAT, BID_OUTCOME_REFUSED, false, "redirected to what is no url" },
	{ CURLE_WEIRD_SERVER_REPLY, BID_OUTCOME_UNREACHABLE, true, "answer out of shape:" },
	{ CURLE_TOO_MANY_REDIRECTS, BID_OUTCOME_REFUSED, false, "redirected too often" },
	{ CURLE_OUT_OF_MEMORY, BID_OUTCOME_FAILED, false, "out of memory" },
};

/* Why, in the words of the system if it knows, or else of libcurl. */
static const char *reason(const struct bid_transfer *transfer, CURLcode code, char *buf, size_t size)
{
	long error = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &error);
	if (error && code != CURLE_OPERATION_TIMEDOUT)
		return strerror_r((int)error, buf, size);
	return transfer->trouble[0] ? transfer->trouble : curl_easy_strerror(code);
}

static void judge_code(struct bid_transfer *transfer, CURLcode code)
{
	char words[CURL_ERROR_SIZE], received[64];
	const char *why = reason(transfer, code, words, sizeof(words));

	/* libcurl says so of a redirect to another protocol, and of an answer in one */
	if (code == CURLE_UNSUPPORTED_PROTOCOL && !transfer->response.redirects) {
		judge(transfer, BID_OUTCOME_REFUSED, false, "does not speak HTTP");
		return;
	}
	for (const struct ending *ending = endings; ending < endings + sizeof(endings) / sizeof(endings[0]); ending++) {
		bool more = ending->words[strlen(ending->words) - 1] == ':';

		if (ending->code != code)
			continue;
		judge(transfer, ending->outcome, ending->retry, "%s%s%s", ending->words, more ? " " : "", more ? why : "");
		return;
	}
	amount(transfer, received, sizeof(received));
	if (code == CURLE_PARTIAL_FILE)
		judge(transfer, BID_OUTCOME_UNREACHABLE, true, "cut short: %s", received);
	else if (transfer->phase == BID_PHASE_BODY)
		judge(transfer, BID_OUTCOME_UNREACHABLE, true, "broke off after %s: %s", received, why);
	else
		judge(transfer, BID_OUTCOME_UNREACHABLE, true, "broke off without an answer: %s", why);
}

/* An answer came to its end as far as libcurl can tell, which believes a connection that is closed without a length. */
static void judge_answer(struct bid_transfer *transfer)
{
	uint64_t size = bid_response_size(&transfer->response);
	char received[64];

	if (transfer->response.status == 200 && size != BID_SIZE_UNKNOWN && transfer->received != size)
		judge(transfer, BID_OUTCOME_UNREACHABLE, true, "cut short: %s", amount(transfer, received, sizeof(received)));
	else
		judge_status(transfer);
}

void bid_transfer_ended(struct bid_transfer *transfer, CURLcode code)
{
	if (transfer->judgement.outcome != BID_OUTCOME_NONE)
		return;
	/* an error has been told by its header; its body is a matter of courtesy */
	if (code == CURLE_OK || (transfer->phase == BID_PHASE_BODY && transfer->response.status != 200))
		judge_answer(transfer);
	else
		judge_code(transfer, code);
}

static bool is_reused(const struct bid_transfer *transfer)
{
	long connects = 1;

	return curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connects) == CURLE_OK && connects == 0;
}

static void judge_slow_body(struct bid_transfer *transfer, int64_t now)
{
	unsigned window_ms = config_of(transfer)->first_byte_ms;
	uint64_t recent = transfer->received - transfer->window_received;
	char received[64];

	if (transfer->response.status != 200) {
		judge_status(transfer);
	} else if (now >= transfer->stall_at) {
		judge(transfer, BID_OUTCOME_UNREACHABLE, true, "stalled after %s", amount(transfer, received, sizeof(received)));
	} else if (recent < (uint64_t)SLOWEST * window_ms / 1000) {
		judge(transfer, BID_OUTCOME_UNREACHABLE, false, "too slow: %" PRIu64 " bytes in %g s", recent, window_ms / 1000.0);
	} else {
		begin_window(transfer, now);
	}
}

void bid_transfer_expired(struct bid_transfer *transfer, int64_t now)
{
	if (transfer->judgement.outcome != BID_OUTCOME_NONE)
		return;

	switch (transfer->phase) {
	case BID_PHASE_CONNECTING:
		judge(transfer, BID_OUTCOME_UNREACHABLE, false, "could not connect within %g s", config_of(transfer)->connect_ms / 1000.0);
		break;
	case BID_PHASE_WAITING:
		/* a connection that lay idle may have been forgotten on the way; a silent server is not asked twice */
		judge(transfer, BID_OUTCOME_UNREACHABLE, is_reused(transfer), "no answer within %g s",
		      config_of(transfer)->first_byte_ms / 1000.0);
		break;
	case BID_PHASE_BODY:
		judge_slow_body(transfer, now);
		break;
	case BID_PHASE_RESTING:
		break;
	}
}

int64_t bid_transfer_retry_after(const struct bid_transfer *transfer)
{
	curl_off_t seconds = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &seconds);
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
