// SPDX-License-Identifier: LGPL-2.1-or-later
/* What was fetched, and is added: it is the user's from then on. */
#include <errno.h>

#include <bid/evict.h>

#include "base/cleanup.h"
#include "disk/find.h"
#include "disk/lock_file.h"
#include "disk/record.h"

int bid_store_claim(struct bid_store *store, const struct bid_request *request)
{
	bid_auto_fd int lock = -1;
	struct bid_file file = BID_FILE_NONE;
	int r, found;

	/* so it is with most, and nothing evicts them */
	if (bid_record_is_fetched(store, request) == 0)
		return 0;
	lock = bid_store_lock(store, true);
	r = bid_record_claim(store, request);
	/* it may have been evicted until now */
	found = bid_find_stored(store, request, &file);
	bid_file_release(&file);
	if (found < 0)
		return found;
	return r == -ENOENT ? 1 : r == -EBADMSG ? 0 : r;
}
