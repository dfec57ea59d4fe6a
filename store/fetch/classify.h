/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Classification of a try. The first result stays.
 *
 * bid_classify_end()		when libcurl ends it
 * bid_classify_deadline()	at the deadline of its state
 * bid_classify*()		for what a callback finds
 */
#ifndef BID_FETCH_CLASSIFY_H
#define BID_FETCH_CLASSIFY_H

#include "fetch/transfer.h"

/* Classify a try that ended with @code. */
void bid_classify_end(struct bid_transfer *transfer, CURLcode code);

/* Classify a try whose deadline is over, unless it goes on until another one. */
void bid_classify_deadline(struct bid_transfer *transfer, int64_t now);

/* Set the result as given, from the status of the response, or from the @error of the receiver. */
void bid_classify(struct bid_transfer *transfer, enum bid_outcome outcome, bool retry, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void bid_classify_status(struct bid_transfer *transfer);
void bid_classify_receiver(struct bid_transfer *transfer, int error);

/* Does the server declare that the source file is empty? An empty body alone may come from a cache or a server in trouble. */
bool bid_declares_empty(const struct bid_transfer *transfer);
void bid_classify_empty(struct bid_transfer *transfer);

/* Does the body end with the connection (RFC 9112, 8)? Then nothing tells whether it is whole. HTTP/2 and chunks mark the end. */
bool bid_ends_with_connection(const struct bid_transfer *transfer);

/* Is the request on a connection of an earlier one? */
bool bid_is_reused(const struct bid_transfer *transfer);

#endif
