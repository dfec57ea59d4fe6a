/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_EVICT_H
#define BID_DISK_EVICT_H

#include "api/evict.h"

/*
 * Remove the download @artifact under all its names, its record, and all that was derived from it: a file of the user or of a
 * signer takes its place. Does nothing without a download. An open reader keeps the file. Returns false if a name has other
 * bytes than the recorded ones: that file and the record stay. The caller holds the lock of the store.
 */
bool bid_evict_download(struct bid_store *store, const struct bid_artifact *artifact);

/* As bid_evict_download(), before the publication of an added file. The record goes in any case. Takes the lock. */
void bid_evict_before_add(struct bid_store *store, const struct bid_artifact *artifact);

/*
 * As bid_store_evict(), but evict at least @at_least bytes. @slack evicts a twentieth more than the limits require, so that the
 * next download does not evict again.
 */
int bid_evict(struct bid_store *store, const struct bid_evict_config *config, uint64_t at_least, bool slack,
	      struct bid_evict_stats *ret_stats);

#endif
