/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a server's answer says and means. Works on text alone, without libcurl. */
#ifndef BID_FETCH_RESPONSE_H
#define BID_FETCH_RESPONSE_H

#include "api/source.h"

#define BID_RESPONSE_HEADER_MAX (64 * 1024) /* bytes of header of all the responses to one try, redirects included */
#define BID_RESPONSE_NAME_MAX	1024 /* characters kept of X-DEBUGINFOD-FILE and -ARCHIVE */
#define BID_RESPONSE_ETAG_MAX	256 /* characters kept of ETag */
#define BID_RESPONSE_TEXT_MAX	128 /* characters kept of the body of an error */

struct bid_response {
	unsigned status; /* of the last response; 0 before there is one */
	bool in_header;
	bool redirects; /* it says where to go instead */
	bool chunked;
	bool is_page; /* text/html */
	bool encoded; /* in a content encoding, which nobody asked for */
	bool accepts_ranges; /* it says that it can send parts */
	uint64_t part_start, part_size; /* of a 206: where it begins, and the size of the whole; or BID_SIZE_UNKNOWN */
	char etag[BID_RESPONSE_ETAG_MAX]; /* a strong validator, with its quotes; "" if there is none */
	uint64_t content_length; /* or BID_SIZE_UNKNOWN */
	uint64_t debuginfod_size; /* X-DEBUGINFOD-SIZE, or BID_SIZE_UNKNOWN */
	char file[BID_RESPONSE_NAME_MAX]; /* "" if there is none; from outside, without control characters */
	char archive[BID_RESPONSE_NAME_MAX];
	char ima_signature[BID_IMA_SIGNATURE_MAX + 1]; /* "" if there is none, or none that is whole bytes in hex */
	char text[BID_RESPONSE_TEXT_MAX]; /* how the body of an error begins */
	size_t text_len;
	size_t header_bytes;
};

enum bid_response_event {
	BID_RESPONSE_MORE, /* more header is to come */
	BID_RESPONSE_INTERIM, /* an interim response is over: another response is to come */
	BID_RESPONSE_BODY, /* the header of the last response is complete: its body is to come */
	BID_RESPONSE_TOO_LONG, /* the header is above BID_RESPONSE_HEADER_MAX */
};

void bid_response_init(struct bid_response *response);

/* Another response to the same try is to come: nothing is left of this one but what its header counts for. */
void bid_response_next(struct bid_response *response);

/* Take one line of header, as it comes, with its line ending. Not for trailers, which come after BID_RESPONSE_BODY. */
enum bid_response_event bid_response_header(struct bid_response *response, const char *line, size_t len);

/* Take a piece of the body of an error. */
void bid_response_error_body(struct bid_response *response, const char *data, size_t len);

/* How long the body is, as announced, or BID_SIZE_UNKNOWN. */
uint64_t bid_response_size(const struct bid_response *response);

/* Does it say that the whole has one size, and another? */
bool bid_response_contradicts_itself(const struct bid_response *response);

/* What the status means, given a complete body; and whether the same server may say something else if it is asked again soon. */
enum bid_outcome bid_response_outcome(const struct bid_response *response, bool *ret_retry);

/* Does it say that the server has the artifact, or that it has not? */
bool bid_response_is_definite(const struct bid_response *response);

/* Is its body the artifact, or a part of it? */
bool bid_response_has_artifact(const struct bid_response *response);

/* Does it say that its rest could be had if it breaks off, of the same file? */
bool bid_response_offers_parts(const struct bid_response *response);

/* Is it complete, and says where to go instead? */
bool bid_response_sends_elsewhere(const struct bid_response *response);

/* Does it say that the server does not know this kind of artifact at all? */
bool bid_response_lacks_kind(const struct bid_response *response);

/* Does it say that the server, rather than this one request, is in trouble? */
bool bid_response_is_server_error(const struct bid_response *response);

/* Make each byte of @text that is not printable ASCII a "?": what a server says goes to logs and terminals. */
void bid_response_plain(char *text);

/* The answer in words: "HTTP 404", "HTTP 503: upstream is down". */
void bid_response_describe(const struct bid_response *response, char *buf, size_t size);

#endif
