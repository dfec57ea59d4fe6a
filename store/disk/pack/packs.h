/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The packs of a store, ".bidfs/pack/NAME". They are kept open, and looked for again when the directory has changed. Any number of
 * processes read and write them without a lock: a merged pack has its name before those that went into it lose theirs, and who has
 * one of these open reads on. A record may be in two packs for that reason; whichever is met first counts, because a record that
 * is new under its key is never written to a pack, and one that is amended loses no more than that. Only one at a time merges.
 */
#ifndef BID_DISK_PACKS_H
#define BID_DISK_PACKS_H

#include <bid/store.h>

#include "disk/pack/pack.h"

struct bid_packs;

int bid_packs_new(struct bid_packs **ret_packs);

/* @packs may be NULL. */
void bid_packs_free(struct bid_packs *packs);

/*
 * The text of the record of @key with a NUL behind it; the caller frees @ret_text, which may be NULL if only whether there is one
 * is asked. -ENOENT if no pack has one, -EBADMSG if those that do are damaged there, or as pread(2). Any thread may call it.
 */
int bid_packs_find(struct bid_store *store, const struct bid_pack_key *key, char **ret_text, size_t *ret_len);

/*
 * Write the @n records @items, none of which has a pack yet, as a pack, and merge others into it so that never more than a few are
 * there: each has at least twice as many records as all smaller ones have together. It is not on disk before the next
 * bid_store_sync(), unless others were merged into it. The items are put in order.
 */
int bid_packs_add(struct bid_store *store, struct bid_pack_item *items, size_t n);

/*
 * From now on, nobody else merges packs or writes them anew, until the descriptor @ret_hold is closed: a lock on
 * ".bidfs/pack.lock", which is made if there is none. Waits @wait_ms milliseconds at most for who does, -EBUSY after that.
 * -EOPNOTSUPP where the file system knows no locks, or as open(2) for who may not write packs. What is not held after waiting is
 * logged, but for -EOPNOTSUPP.
 */
int bid_packs_hold(struct bid_store *store, int wait_ms, int *ret_hold);

enum { BID_PACKS_WAIT_MS = 10 * 1000 }; /* of who repairs; who adds does not wait */

/*
 * Write all packs that there are anew, as one, as @amender wants its records. On disk on return of 0. To be called under
 * bid_packs_hold(), and not where the locks of other machines may not be seen (bid_temp_is_shared()).
 */
int bid_packs_rewrite(struct bid_store *store, const struct bid_pack_amender *amender);

/*
 * The pack @name, or what is in the place of one, is damaged: write what is sound in it to another, and remove it. Returns 0 if it
 * is gone. Waits as bid_packs_hold() with BID_PACKS_WAIT_MS.
 */
int bid_packs_mend(struct bid_store *store, const char *name);

#endif
