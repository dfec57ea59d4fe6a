// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bid/error.h>

#include "base/clock.h"
#include "fetch/classify.h"
#include "fetch/file_tree.h"
#include "fetch/network_thread.h"
#include "fetch/url.h"

#define CONNECT_GRACE_MS   250 /* lets libcurl's timer, with its better message, end first */
#define ERROR_BODY_MAX	   (16 * 1024) /* limit; reading less would cost the connection */
#define IDLE_MAX_S	   30L /* a connection idle for longer may have been dropped, for example by a firewall */
#define REDIRECTS_MAX	   5L
#define RETRY_AFTER_SANE_S 86400 /* a longer Retry-After counts as this */

/* Set the state CONNECTING: at the begin of a request, or after a redirect. */
static void begin_connect(struct bid_transfer *transfer)
{
	transfer->state = BID_TRANSFER_CONNECTING;
	transfer->peer[0] = '\0';
	bid_transfer_set_deadline(transfer, bid_clock_ms() + bid_transfer_config(transfer)->connect_ms + CONNECT_GRACE_MS);
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

/* Let a late response come, up to answer_ms, after the breaker has counted it. */
static void allow_late(struct bid_transfer *transfer, int64_t now)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);
	int64_t waited = transfer->deadline.at_ms - transfer->sent_at;

	bid_http_server_note_late(transfer->server, transfer, now);
	if (waited >= config->answer_ms)
		return;
	transfer->end = (struct bid_transfer_end){ 0 };
	waited += config->first_byte_ms;
	bid_transfer_set_deadline(transfer, transfer->sent_at + (waited < config->answer_ms ? waited : config->answer_ms));
}

void bid_transfer_time_out(struct bid_transfer *transfer, int64_t now)
{
	bool waits = transfer->state == BID_TRANSFER_WAITING || transfer->state == BID_TRANSFER_LATE;

	if (transfer->end.outcome != BID_OUTCOME_NONE)
		return;
	bid_classify_deadline(transfer, now);
	if (waits && now < transfer->ends_at)
		allow_late(transfer, now);
}

/* Called before each request, also before that to the target of a redirect. */
static int on_request(void *user, char *primary_ip, char *local_ip, int primary_port, int local_port)
{
	struct bid_transfer *transfer = user;

	if (transfer->redirects > 0 && set_headers(transfer) < 0) {
		bid_classify(transfer, BID_OUTCOME_FAILED, false, "out of memory");
		return CURL_PREREQFUNC_ABORT;
	}
	await_response(transfer);
	return CURL_PREREQFUNC_OK;
}

/* Accept the requested part of a body. Returns 0, or -1 with the end set. */
static int begin_part(struct bid_transfer *transfer)
{
	if (bid_classify_wrong_part(transfer))
		return -1;
	transfer->received = transfer->resume.offset;
	return 0;
}

/* Accept the whole body. Returns 0, or non-zero with the end set. */
static int begin_whole(struct bid_transfer *transfer)
{
	int r;

	if (bid_classify_wrong_text(transfer))
		return -1;
	r = transfer->receiver.header(transfer->user, bid_response_size(&transfer->response));
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

	/* see bid_classify_wrong_text(); the section's end is marked in another way */
	if (transfer->artifact.kind == BID_KIND_SECTION && !bid_classify_ends_with_connection(transfer))
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
	curl_easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_LIMIT, BID_SLOWEST);
	curl_easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_TIME, bid_slow_s(config));
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
		bid_classify(transfer, BID_OUTCOME_REFUSED, false, "header above %d bytes", BID_RESPONSE_HEADER_MAX);
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
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, true, "more than the announced %" PRIu64 " bytes", size);
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
		bid_classify(transfer, BID_OUTCOME_REFUSED, false, "malformed response");
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
	bid_classify_status(transfer);
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
	bid_classify_end(transfer, CURLE_OK);
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
		bid_classify(transfer, BID_OUTCOME_UNAVAILABLE, false, "the file system does not respond to earlier requests");
	else
		bid_classify(transfer, BID_OUTCOME_FAILED, false, "%s", bid_strerror(r));
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
		bid_classify(transfer, BID_OUTCOME_FAILED, false, "out of memory");
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
