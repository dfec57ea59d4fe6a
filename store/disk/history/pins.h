/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What was fetched first under an id, by its digest: kept when the artifact itself is evicted, so that other bytes with the same id
 * are noticed when it is fetched again (docs/FORMAT.md, "Pins").
 */
#ifndef BID_DISK_PINS_H
#define BID_DISK_PINS_H

#include <xxhash.h>

#include <bid/store.h>

/* All of them, as they were when they were opened. Not for two threads at once. */
struct bid_pins;

/* Reads them. Returns 0 or -ENOMEM. @store outlives them. */
int bid_pins_open(struct bid_store *store, struct bid_pins **ret_pins);

/* @pins may be NULL. */
void bid_pins_close(struct bid_pins *pins);

/* The digest that is pinned for @request. Returns 0, or -ENOENT if nothing is known of it. */
int bid_pin_get(const struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t *ret_digest);

/* Pin @digest, in the place of an earlier one. */
int bid_pin_set(struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t digest);

#endif
