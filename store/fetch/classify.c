// SPDX-License-Identifier: LGPL-2.1-or-later
/* How a try ended: what the server, libcurl, the clock and the receiver have to say, as an outcome and in words. */
#include "fetch/classify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fetch/network.h"

#define LONGER 4 /* times answer_ms for one answer of a server that answers others meanwhile */

bool bid_is_reused(const struct bid_transfer *transfer)
{
	long connects = 1;

	return curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connects) == CURLE_OK && connects == 0;
}

/* What an end that is not a complete answer says of the server. */
static enum bid_sign sign_of(const struct bid_transfer *transfer, enum bid_outcome outcome)
{
	switch (transfer->state) {
	case BID_TRANSFER_CONNECTING:
		/* where it sent us may be dead: the server itself has answered */
		return outcome == BID_OUTCOME_FAILED ? BID_SIGN_NONE : transfer->hops > 0 ? BID_SIGN_BAD : BID_SIGN_DEAD;
	case BID_TRANSFER_WAITING:
	case BID_TRANSFER_LATE:
		return BID_SIGN_BAD;
	case BID_TRANSFER_BODY:
		/* of what is not what was asked for, who checks it tells */
		return outcome == BID_OUTCOME_UNREACHABLE ? BID_SIGN_BAD
		       : outcome == BID_OUTCOME_REJECTED  ? BID_SIGN_NONE
							  : BID_SIGN_HEALTHY;
	default:
		return BID_SIGN_NONE;
	}
}

void bid_classify(struct bid_transfer *transfer, enum bid_outcome outcome, bool retry, const char *format, ...)
{
	struct bid_try_result *result = &transfer->result;
	va_list arguments;

	result->outcome = outcome;
	result->retry = retry ? BID_RETRY_LATER : BID_RETRY_NEVER;
	result->sign = sign_of(transfer, outcome);
	va_start(arguments, format);
	vsnprintf(result->text, sizeof(result->text), format, arguments);
	va_end(arguments);
}

/* A server that understood no request yet, and says that this is none, may be no debuginfod, or not the one that was meant. */
static bool is_server_error(const struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;

	return bid_response_is_server_error(response) || (response->status == 400 && !transfer->server->understands);
}

void bid_classify_status(struct bid_transfer *transfer)
{
	struct bid_try_result *result = &transfer->result;
	bool retry;

	/* the rest of a file that is not there any more: all of what took its place may be */
	if (transfer->resume.offset && transfer->response.status == 416) {
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, true, "HTTP 416: the file has changed");
		return;
	}
	result->sign = is_server_error(transfer) ? BID_SIGN_BAD : BID_SIGN_HEALTHY;
	result->outcome = bid_response_outcome(&transfer->response, &retry);
	result->retry = retry ? BID_RETRY_LATER : BID_RETRY_NEVER;
	/* no limit was told that it could be above: it speaks of something else (RFC 9110, 15.5.7) */
	if (result->outcome == BID_OUTCOME_TOO_LARGE && bid_transfer_config(transfer)->max_size == 0)
		result->outcome = BID_OUTCOME_REFUSED;
	bid_response_describe(&transfer->response, result->text, sizeof(result->text));
}

void bid_classify_receiver(struct bid_transfer *transfer, int error)
{
	char words[128];

	if (error == -EBADMSG)
		bid_classify(transfer, BID_OUTCOME_REJECTED, false, "not what was asked for");
	else
		bid_classify(transfer, BID_OUTCOME_FAILED, false, "could not keep it: %s",
			     strerror_r(-error, words, sizeof(words)));
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

/* What ends a try before, or instead of, an answer. What is not here is a connection that broke. */
static const struct ending {
	CURLcode code;
	enum bid_outcome outcome;
	bool retry;
	const char *words; /* before the reason; or all there is to say, without a colon at its end */
} endings[] = {
	/* a server that cannot be found is not found by asking again at once, and to wait for it is paid for in full each time */
	{ CURLE_COULDNT_RESOLVE_PROXY, BID_OUTCOME_UNREACHABLE, false, "could not resolve the proxy:" },
	{ CURLE_COULDNT_RESOLVE_HOST, BID_OUTCOME_UNREACHABLE, false, "could not resolve the name" },
	{ CURLE_OPERATION_TIMEDOUT, BID_OUTCOME_UNREACHABLE, false, "could not connect:" },
	{ CURLE_COULDNT_CONNECT, BID_OUTCOME_UNREACHABLE, true, "could not connect:" },
	{ CURLE_SSL_CONNECT_ERROR, BID_OUTCOME_UNREACHABLE, true, "no secure connection:" },
	{ CURLE_PEER_FAILED_VERIFICATION, BID_OUTCOME_UNREACHABLE, false, "no secure connection:" },
	{ CURLE_SSL_CACERT_BADFILE, BID_OUTCOME_UNREACHABLE, false, "no secure connection:" },
	{ CURLE_SSL_ISSUER_ERROR, BID_OUTCOME_UNREACHABLE, false, "no secure connection:" },
	{ CURLE_UNSUPPORTED_PROTOCOL, BID_OUTCOME_REFUSED, false, "does not speak HTTP:" },
	{ CURLE_BAD_CONTENT_ENCODING, BID_OUTCOME_REFUSED, false, "came in an encoding that cannot be decoded:" },
	{ CURLE_WEIRD_SERVER_REPLY, BID_OUTCOME_UNREACHABLE, true, "answer out of shape:" },
	{ CURLE_OUT_OF_MEMORY, BID_OUTCOME_FAILED, false, "out of memory" },
};

/* May another try end better? One that refuses connections may be restarted, if it was ever there. */
static bool may_come_back(const struct bid_transfer *transfer, const struct ending *ending)
{
	return ending->retry && (ending->code != CURLE_COULDNT_CONNECT || transfer->server->answered_at > 0);
}

/* Why, in the words of the system if it knows, or else of libcurl. */
static const char *reason(struct bid_transfer *transfer, CURLcode code, char *buf, size_t size)
{
	const char *words;
	long error = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &error);
	if (error && code != CURLE_OPERATION_TIMEDOUT)
		return strerror_r((int)error, buf, size);
	/* libcurl repeats what it did not like of an answer, whatever bytes that are */
	bid_response_plain(transfer->curl_error);
	words = code == CURLE_COULDNT_RESOLVE_PROXY ? strrchr(transfer->curl_error, ' ') : NULL;
	if (words)
		return words + 1;
	return transfer->curl_error[0] ? transfer->curl_error : curl_easy_strerror(code);
}

/* It was not connected in time; but was it we who did nothing about it? libcurl looks at its limit before it looks at what came. */
static void excuse_connecting(struct bid_transfer *transfer)
{
	if (transfer->server->fetch->held_at <= transfer->connect_at)
		return;
	transfer->result.retry = BID_RETRY_LATER;
	transfer->result.sign = BID_SIGN_NONE;
}

/* A line of header that libcurl has no room for is no lack of memory. It has room for more than all of a header may be. */
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
	const char *why = reason(transfer, code, words, sizeof(words));

	if (code == CURLE_OPERATION_TIMEDOUT && transfer->state == BID_TRANSFER_BODY) {
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, false, "too slow: less than %ld bytes a second for %ld s",
			     BID_SLOWEST, bid_slow_s(bid_transfer_config(transfer)));
		return;
	}
	if (is_endless_line(transfer, code)) {
		bid_classify(transfer, BID_OUTCOME_REFUSED, false, "header above %d bytes", BID_RESPONSE_HEADER_MAX);
		return;
	}
	for (const struct ending *ending = endings; ending < endings + sizeof(endings) / sizeof(endings[0]); ending++) {
		bool more = ending->words[strlen(ending->words) - 1] == ':';

		if (ending->code != code)
			continue;
		/* the address of a proxy, if there is one, or of a server that the server sends to */
		if (transfer->peer[0] && (code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT))
			bid_classify(transfer, ending->outcome, may_come_back(transfer, ending), "could not connect to %s: %s",
				     transfer->peer, why);
		else
			bid_classify(transfer, ending->outcome, may_come_back(transfer, ending), "%s%s%s", ending->words,
				     more ? " " : "", more ? why : "");
		if (code == CURLE_OPERATION_TIMEDOUT)
			excuse_connecting(transfer);
		return;
	}
	amount(transfer, received, sizeof(received));
	if (code == CURLE_PARTIAL_FILE)
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, true, "cut short: %s", received);
	else if (transfer->state == BID_TRANSFER_BODY)
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, true, "broke off after %s: %s", received, why);
	else
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, true, "broke off without an answer: %s", why);
}

bool bid_ends_with_connection(const struct bid_transfer *transfer)
{
	long version = CURL_HTTP_VERSION_NONE;

	curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_VERSION, &version);
	return version <= CURL_HTTP_VERSION_1_1 && !transfer->response.chunked;
}

/* Nothing tells whether the body is whole, but the check of it if it is an ELF file. That is the server's way, and no trouble. */
static void classify_open_end(struct bid_transfer *transfer)
{
	char received[64];

	bid_classify(transfer, BID_OUTCOME_UNREACHABLE, false, "%s, and nothing tells whether that is all",
		     amount(transfer, received, sizeof(received)));
	transfer->result.sign = BID_SIGN_HEALTHY;
}

bool bid_declares_empty(const struct bid_transfer *transfer)
{
	return transfer->kind == BID_KIND_SOURCE && transfer->response.debuginfod_size == 0;
}

void bid_classify_empty(struct bid_transfer *transfer)
{
	bid_classify(transfer, BID_OUTCOME_REFUSED, false, "no bytes, which need not be what is there");
}

/* An answer came to its end as far as libcurl can tell, which believes a connection that is closed without a length. */
static void classify_answer(struct bid_transfer *transfer)
{
	uint64_t size = bid_response_size(&transfer->response);
	bool is_body = bid_response_has_artifact(&transfer->response);
	/* libcurl has seen all bytes of an encoding whose length was told */
	bool open = size == BID_SIZE_UNKNOWN && transfer->response.content_length == BID_SIZE_UNKNOWN;
	char received[64];

	if (is_body && size != BID_SIZE_UNKNOWN && transfer->received != size)
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, true, "cut short: %s",
			     amount(transfer, received, sizeof(received)));
	else if (is_body && open && !bid_kind_is_elf(transfer->kind) && bid_ends_with_connection(transfer))
		classify_open_end(transfer);
	else if (is_body && transfer->received == 0 && bid_kind_has_detail(transfer->kind) && !bid_declares_empty(transfer))
		bid_classify_empty(transfer);
	else
		bid_classify_status(transfer);
	/* a part that was not asked for has been judged before it came to this */
	if (transfer->result.outcome == BID_OUTCOME_REFUSED && transfer->response.status == 206)
		transfer->result.outcome = BID_OUTCOME_FOUND;
	/* whether that is the right file is for the check of it to say */
	if (transfer->result.outcome == BID_OUTCOME_FOUND && bid_kind_is_elf(transfer->kind))
		transfer->result.sign = BID_SIGN_NONE;
}

void bid_classify_end(struct bid_transfer *transfer, CURLcode code)
{
	if (transfer->result.outcome != BID_OUTCOME_NONE)
		return;
	/* an error has been told by its header; its body is a matter of courtesy */
	if (code == CURLE_OK || (transfer->state == BID_TRANSFER_BODY && !bid_response_has_artifact(&transfer->response)))
		classify_answer(transfer);
	else
		classify_code(transfer, code);
}

/*
 * Did the server answer another request in the later half of the last first_byte_ms? Then it is not the server that is gone: one
 * that has to get the file from elsewhere first, or out of a large archive, says nothing before that is done.
 */
static bool answers_others(const struct bid_transfer *transfer)
{
	return transfer->server->answered_at > transfer->deadline - bid_transfer_config(transfer)->first_byte_ms / 2;
}

/* A connection that lay idle may be dead, as a firewall forgot it or the network changed: a fresh one tells. */
static void classify_dead_connection(struct bid_transfer *transfer)
{
	bid_classify(transfer, BID_OUTCOME_UNREACHABLE, true, "no answer within %g s on a connection that was kept",
		     (double)(transfer->deadline - transfer->sent_at) / 1000);
	transfer->result.sign = BID_SIGN_NONE;
	transfer->result.retry = BID_RETRY_AT_ONCE;
}

/* No answer came for first_byte_ms, or a few times that. Others are to know of it; but who asked can wait. */
static void classify_late(struct bid_transfer *transfer, int64_t now)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);
	bool others = answers_others(transfer);
	int64_t waited = transfer->deadline - transfer->sent_at;
	int64_t limit = waited < config->answer_ms || !others ? config->answer_ms : LONGER * (int64_t)config->answer_ms;

	/* a silent server is not asked twice */
	bid_classify(transfer, BID_OUTCOME_UNREACHABLE, false, "no answer within %g s", (double)waited / 1000);
	if (others || transfer->state == BID_TRANSFER_LATE)
		transfer->result.sign = BID_SIGN_NONE;
	else
		transfer->result.sign = bid_server_late_sign(transfer->server);
	if (bid_transfer_is_detached(transfer) || waited >= limit)
		return;
	bid_server_note_late(transfer->server, transfer, now);
	transfer->result = (struct bid_try_result){ 0 };
	waited += config->first_byte_ms;
	bid_transfer_set_deadline(transfer, transfer->sent_at + (waited < limit ? waited : limit));
}

static void classify_stalled_body(struct bid_transfer *transfer)
{
	char received[64];

	if (bid_response_has_artifact(&transfer->response))
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, true, "stalled after %s",
			     amount(transfer, received, sizeof(received)));
	else
		bid_classify_status(transfer);
}

void bid_classify_deadline(struct bid_transfer *transfer, int64_t now)
{
	const struct bid_fetch_config *config = bid_transfer_config(transfer);

	if (transfer->result.outcome != BID_OUTCOME_NONE)
		return;
	if (now >= transfer->ends_at) {
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, false, "not done within %g s", config->max_time_ms / 1000.0);
		/* the limit is ours, and bytes came */
		if (transfer->state == BID_TRANSFER_BODY)
			transfer->result.sign = BID_SIGN_NONE;
		return;
	}

	switch (transfer->state) {
	case BID_TRANSFER_CONNECTING:
		bid_classify(transfer, BID_OUTCOME_UNREACHABLE, false, "could not connect within %g s",
			     config->connect_ms / 1000.0);
		excuse_connecting(transfer);
		break;
	case BID_TRANSFER_WAITING:
	case BID_TRANSFER_LATE:
		if (bid_is_reused(transfer))
			classify_dead_connection(transfer);
		else
			classify_late(transfer, now);
		break;
	case BID_TRANSFER_BODY:
		classify_stalled_body(transfer);
		break;
	default:
		break;
	}
}
