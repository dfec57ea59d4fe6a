/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Classification of a request. The first result stays.
 *
 * bid_classify_end()		when libcurl ends the request
 * bid_classify_deadline()	at the deadline of its state
 * bid_classify*()		in a callback
 */
#ifndef BID_FETCH_CLASSIFY_H
#define BID_FETCH_CLASSIFY_H

#include "fetch/transfer.h"

/* Classify a request that ended with @code. */
void bid_classify_end(struct bid_transfer *transfer, CURLcode code);

/* Classify a request at its deadline, or give it another deadline. */
void bid_classify_deadline(struct bid_transfer *transfer, int64_t now);

/* Set the given result, the one of the response's status, or the one of the receiver's @error. */
void bid_classify(struct bid_transfer *transfer, enum bid_outcome outcome, bool retry, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void bid_classify_status(struct bid_transfer *transfer);
void bid_classify_receiver(struct bid_transfer *transfer, int error);

/* Does the server declare the source file as empty? An empty body alone may come from a cache or from a failing server. */
bool bid_declares_empty(const struct bid_transfer *transfer);
void bid_classify_empty(struct bid_transfer *transfer);

/* Does the body end with the connection (RFC 9112, 8)? Then its completeness is unknown. HTTP/2 and chunks mark the end. */
bool bid_ends_with_connection(const struct bid_transfer *transfer);

/* Is the request on a connection of an earlier one? */
bool bid_is_reused(const struct bid_transfer *transfer);

#endif
