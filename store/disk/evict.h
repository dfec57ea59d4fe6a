/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_EVICT_H
#define BID_DISK_EVICT_H

#include "api/evict.h"

/*
 * bid_store_evict(), but at least @at_least bytes if there are any to evict, and with @slack a twentieth more than the limits ask
 * for, so that it need not be done again at once.
 */
int bid_evict(struct bid_store *store, const struct bid_evict_config *config, uint64_t at_least, bool slack,
	      struct bid_evict_stats *ret_stats);

#endif
