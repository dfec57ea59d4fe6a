/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes to records that are in packs, which are never changed: they are collected, and the packs written anew with them. One
 * thread's.
 */
#ifndef BID_DISK_RECORD_AMEND_H
#define BID_DISK_RECORD_AMEND_H

#include <bid/store.h>

struct bid_record_amends;

int bid_record_amends_new(struct bid_store *store, struct bid_record_amends **ret_amends);

/* Forgets what was not written. @amends may be NULL. */
void bid_record_amends_free(struct bid_record_amends *amends);

/*
 * Set the digest in the record of @request, which has no detail: at once if that has a file of its own, which it also gets where
 * packs cannot be kept from being merged (bid_packs_hold()). Many are written before they are too many. Errors as of
 * bid_record_set().
 */
int bid_record_amends_digest(struct bid_record_amends *amends, const struct bid_request *request, const char *digest);

/* The record of @request is void: neither packs nor the empty file need to say so any more. */
int bid_record_amends_void(struct bid_record_amends *amends, const struct bid_request *request);

/*
 * Write what was collected; whatever is returned, it is gone from @amends. What was changed by others meanwhile stays as they left
 * it.
 */
int bid_record_amends_write(struct bid_record_amends *amends);

#endif
