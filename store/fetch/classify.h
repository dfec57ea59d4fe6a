/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a try ended. The first judgement stands. */
#ifndef BID_FETCH_CLASSIFY_H
#define BID_FETCH_CLASSIFY_H

#include "fetch/transfer.h"

/* The try ended with @code, unless it was judged before. */
void bid_classify_end(struct bid_transfer *transfer, CURLcode code);

/* The deadline is over: judge the try, unless it was judged before or may go on until another deadline. */
void bid_classify_deadline(struct bid_transfer *transfer, int64_t now);

/* Judge as given; from the status of the response; from the @error that the receiver returned. */
void bid_classify(struct bid_transfer *transfer, enum bid_outcome outcome, bool retry, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void bid_classify_status(struct bid_transfer *transfer);
void bid_classify_receiver(struct bid_transfer *transfer, int error);

/*
 * No bytes are no section, and a source file only if the server says of it that it has none: what a server in trouble answers with,
 * or a cache, looks the same. Nothing in them would tell.
 */
bool bid_declares_empty(const struct bid_transfer *transfer);
void bid_classify_empty(struct bid_transfer *transfer);

/*
 * RFC 9112, 8: of a body without a length, that ends with its connection, nobody can say whether it was all. HTTP/2 and chunks mark
 * the end.
 */
bool bid_ends_with_connection(const struct bid_transfer *transfer);

/* Is the request of @transfer on a connection that another one was on before? */
bool bid_is_reused(const struct bid_transfer *transfer);

#endif
