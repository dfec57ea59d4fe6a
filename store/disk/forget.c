// SPDX-License-Identifier: LGPL-2.1-or-later
/* Expiry of facts by their age alone. */
#include <errno.h>

#include "api/evict.h"
#include "disk/fact.h"
#include "disk/layout.h"
#include "disk/quarantine.h"
#include "disk/scan/scan_cache.h"
#include "disk/store.h"

enum {
	FIRST_MAX = 200000, /* first-seen digests of downloads, approximately */
	ABSENT_MAX = 100000, /* negative cache entries, approximately */
};

int bid_store_forget(struct bid_store *store, int64_t before, bool dry_run, struct bid_forgotten *ret_left,
		     struct bid_forgotten *ret_gone)
{
	struct bid_forgotten left = { 0 }, gone = { 0 };
	int r;

	if (!dry_run && !bid_store_writable(store))
		return -EROFS;
	r = bid_quarantine_expire(store, before, dry_run, &left.quarantined, &gone.quarantined);
	if (r == 0)
		r = bid_scan_caches_forget(store, before, dry_run, &left.scans, &gone.scans);
	if (r == 0 && !dry_run)
		r = bid_fact_trim(store, BID_LAYOUT_FIRST, FIRST_MAX, INT64_MIN);
	if (r == 0 && !dry_run)
		r = bid_fact_trim(store, BID_LAYOUT_ABSENT, ABSENT_MAX, before);
	if (r < 0)
		return r;
	*ret_left = left;
	*ret_gone = gone;
	return 0;
}
