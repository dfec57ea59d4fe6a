/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The meaning of the end of a request: from codes of libcurl, statuses, headers and deadlines to an outcome, a text, a retry and a
 * health signal. They write transfer->end alone; bid_classify_end() also makes transfer->curl_error plain text.
 */
#ifndef BID_FETCH_CLASSIFY_H
#define BID_FETCH_CLASSIFY_H

#include "fetch/transfer.h"

/* Set the end, with the text of @format. The state of @transfer decides on the health signal. */
__attribute__((format(printf, 4, 5))) void bid_classify(struct bid_transfer *transfer, enum bid_outcome outcome, bool retry,
							const char *format, ...);

/* Set the end by the status of the response. */
void bid_classify_status(struct bid_transfer *transfer);

/* Set the end by the @error of the receiver. */
void bid_classify_receiver(struct bid_transfer *transfer, int error);

/* Is the header of a part another one than requested? Then sets the end. */
bool bid_classify_wrong_part(struct bid_transfer *transfer);

/*
 * Does the header contradict the source file or the section? Then sets the end. The X-DEBUGINFOD-SIZE of a section may be that of
 * the whole file, which elfutils' server has just unpacked.
 */
bool bid_classify_wrong_text(struct bid_transfer *transfer);

/* Does the body end with the connection (RFC 9112, 8)? Then its completeness is unknown. HTTP/2 and chunks mark the end. */
bool bid_classify_ends_with_connection(const struct bid_transfer *transfer);

/* Set the end of a request that libcurl ended with @code, unless it has one. */
void bid_classify_end(struct bid_transfer *transfer, CURLcode code);

/* Set the end of a request without one at the deadline of its state. */
void bid_classify_deadline(struct bid_transfer *transfer, int64_t now);

#endif
