/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_EVICT_H
#define BID_DISK_EVICT_H

#include "api/evict.h"

/*
 * As bid_store_evict(), but evict at least @at_least bytes. @slack evicts a twentieth more than the limits require, so that the
 * next download does not evict again.
 */
int bid_evict(struct bid_store *store, const struct bid_evict_config *config, uint64_t at_least, bool slack,
	      struct bid_evict_stats *ret_stats);

#endif
