// SPDX-License-Identifier: LGPL-2.1-or-later
/* An added file that was downloaded before: from then on it belongs to the user. */
#include <errno.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "disk/find.h"
#include "disk/lock_file.h"
#include "disk/record.h"

/* Check that the artifact still exists. An eviction may have removed it meanwhile, and then its record. */
static int look_again(struct bid_store *store, const struct bid_request *request)
{
	struct bid_file file = BID_FILE_NONE;
	struct stat st;
	int r;

	if (bid_find_stat(store, request, &st) == 0)
		return 0;
	/* a lower store may have it */
	r = bid_find_stored(store, request, &file);
	bid_file_release(&file);
	return r;
}

int bid_store_claim(struct bid_store *store, const struct bid_request *request)
{
	bid_auto_fd int lock = -1;
	struct stat st;
	int r;

	/* the user's already, as most are */
	if (bid_record_stat(store, request, &st) == -ENOENT)
		return look_again(store, request);
	lock = bid_store_lock(store, true);
	r = look_again(store, request);
	if (r == 0)
		r = bid_record_drop(store, request);
	return r == -ENOENT ? look_again(store, request) : r;
}
