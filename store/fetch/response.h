/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Header of a response, and its meaning. Without libcurl, which parses the lines. */
#ifndef BID_FETCH_RESPONSE_H
#define BID_FETCH_RESPONSE_H

#include "api/server.h"

#define BID_RESPONSE_HEADER_MAX (64 * 1024) /* bytes of the headers of one request, with its redirects */
#define BID_RESPONSE_NAME_MAX	1024 /* characters kept of X-DEBUGINFOD-FILE and -ARCHIVE */
#define BID_RESPONSE_ETAG_MAX	256 /* characters kept of ETag */
#define BID_RESPONSE_TEXT_MAX	128 /* characters kept of the body of an error */

struct bid_response {
	unsigned status; /* 0 before the first response */
	bool is_redirect; /* with Location */
	bool chunked;
	bool is_page; /* text/html */
	bool encoded; /* in an unrequested content encoding */
	bool accepts_ranges; /* Accept-Ranges */
	uint64_t part_start, part_size; /* 206: begin of the part, and size of the whole; or BID_SIZE_UNKNOWN */
	char etag[BID_RESPONSE_ETAG_MAX]; /* strong validator with its quotes, or "" */
	int64_t modified; /* Last-Modified in seconds since the epoch, or 0 */
	uint64_t content_length; /* or BID_SIZE_UNKNOWN */
	uint64_t debuginfod_size; /* X-DEBUGINFOD-SIZE, or BID_SIZE_UNKNOWN */
	char file[BID_RESPONSE_NAME_MAX]; /* without control characters; "" for none */
	char archive[BID_RESPONSE_NAME_MAX];
	char ima_signature[BID_IMA_SIGNATURE_MAX + 1]; /* whole bytes in hex; "" for none */
	char text[BID_RESPONSE_TEXT_MAX]; /* begin of the body of an error */
	size_t text_len;
};

/* Begin a response with @status; 0 before the first one of a request. */
void bid_response_init(struct bid_response *response, unsigned status);

/* Take a field of the header. The last one of a name counts. */
void bid_response_field(struct bid_response *response, const char *name, const char *value);

/* Take a piece of the body of an error. */
void bid_response_error_body(struct bid_response *response, const char *data, size_t len);

/* Returns the announced size of the body, or BID_SIZE_UNKNOWN. */
uint64_t bid_response_size(const struct bid_response *response);

/* Does the header announce two different sizes of the whole? */
bool bid_response_contradicts_itself(const struct bid_response *response);

/* Returns the meaning of the status, with a complete body. *@ret_retry tells whether a retry may have another result. */
enum bid_outcome bid_response_outcome(const struct bid_response *response, bool *ret_retry);

/* Is the response definite: the server has the artifact, or lacks it? */
bool bid_response_is_definite(const struct bid_response *response);

/* Is the body the artifact or a part of it? */
bool bid_response_has_artifact(const struct bid_response *response);

/* Can the body be resumed? */
bool bid_response_offers_parts(const struct bid_response *response);

/* Does the response show an error of the server, rather than of this request? */
bool bid_response_is_server_error(const struct bid_response *response);

/* Replace each byte of @text that is not printable ASCII by "?", for logs and terminals. */
void bid_response_plain(char *text);

/* Write the response in words: "HTTP 404", "HTTP 503: upstream is down". */
void bid_response_describe(const struct bid_response *response, char *buf, size_t size);

#endif
