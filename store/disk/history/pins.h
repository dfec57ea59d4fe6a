/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What was fetched first under an id, by its digest: kept when the artifact itself is evicted, so that other bytes with the same id
 * are noticed when it is fetched again (docs/FORMAT.md, "Pins").
 */
#ifndef BID_DISK_PINS_H
#define BID_DISK_PINS_H

#include <xxhash.h>

#include <bid/store.h>

/* Those of one store. May be used by any thread. */
struct bid_pins;

/* @store outlives them. The journal is read when they are asked for the first time. */
int bid_pins_new(struct bid_store *store, struct bid_pins **ret_pins);

/* @pins may be NULL. */
void bid_pins_free(struct bid_pins *pins);

/*
 * The digest that is pinned for @request. Returns 0; -ENOENT if nothing is known of it; or why the journal cannot be read, -ENOMEM
 * too: then there may be one.
 */
int bid_pin_get(struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t *ret_digest);

/* Pin @digest, in the place of an earlier one. Locking: as bid_journal_append(). */
int bid_pin_set(struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t digest);

#endif
