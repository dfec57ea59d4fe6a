/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes to records that are in packs, which are never changed: they are collected, and the packs written anew with them, if they
 * are worth that. One thread's.
 */
#ifndef BID_DISK_RECORD_AMEND_H
#define BID_DISK_RECORD_AMEND_H

#include <bid/store.h>

struct bid_record_amends;

/* Packs are written anew only by who goes through the @whole store, and has found by then what is damaged in them. */
int bid_record_amends_new(struct bid_store *store, bool whole, struct bid_record_amends **ret_amends);

/* Forgets what was not written. @amends may be NULL. */
void bid_record_amends_free(struct bid_record_amends *amends);

/*
 * Set the digest in the record of @request, which has no detail: at once if that has a file of its own, which it also gets if packs
 * are not to be written, or may be merged by machines whose locks are not seen. Many are written before they are too many. Errors
 * as of bid_record_set().
 */
int bid_record_amends_digest(struct bid_record_amends *amends, const struct bid_request *request, const char *digest);

/* The record of @request is void: neither packs nor the empty file need to say so any more, if packs are written. */
int bid_record_amends_void(struct bid_record_amends *amends, const struct bid_request *request);

/*
 * Write what was collected; whatever is returned, it is gone from @amends. What was changed by others meanwhile stays as they left
 * it. Digests that are few beside what packs have give each record a file of its own, and so they do if packs could not be written
 * or held, which bid_packs_hold() waits for: with an error of those, voids stay, and no digest is lost.
 */
int bid_record_amends_write(struct bid_record_amends *amends);

/* Why a digest that was set is not recorded, whichever function it was lost in: the error of the first one, or 0. */
int bid_record_amends_lost(const struct bid_record_amends *amends);

#endif
