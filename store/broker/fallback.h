/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A section that no server has, or that one which has just served it denies (elfutils 0.192 and later): it may still be in a file
 * that they have. Who waits for it waits for these files then, one after the other, with the same ticket.
 */
#ifndef BID_BROKER_FALLBACK_H
#define BID_BROKER_FALLBACK_H

#include "broker/download.h"

struct bid_fallback;

/* For a waiter for the section @section. */
int bid_fallback_new(const struct bid_request *section, struct bid_fallback **ret_instead);

/*
 * What @waiter, who waits for a section, asked for last has come to @error, in @download, which may be NULL. Returns
 *   -EINPROGRESS	it waits for something else now, and is not the caller's any more
 *   other		what there is to answer; the ticket is used up. @ret_file is set if the section was cut out of another file
 * Without the lock. May block on the disk.
 */
int bid_fallback_step(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_download *download,
		      struct bid_file *ret_file);

/* Let @result have what was said in all downloads, as long as @fallback lives. */
void bid_fallback_tell(struct bid_fallback *fallback, struct bid_result *result);

/* @fallback may be NULL. Without the lock. */
void bid_fallback_free(struct bid_fallback *fallback);

#endif
