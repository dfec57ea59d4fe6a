// SPDX-License-Identifier: LGPL-2.1-or-later
/* Downloads that no eviction removes: the user added or pinned them. */
#include <errno.h>
#include <sys/stat.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "disk/lock_file.h"
#include "disk/lookup.h"
#include "disk/record.h"
#include "disk/store.h"

/* Check that the artifact still exists. An eviction may have removed it meanwhile, and then its record. */
static int look_again(struct bid_store *store, const struct bid_artifact *artifact)
{
	struct bid_file file = BID_FILE_NONE;
	struct stat st;
	int r;

	if (bid_lookup_stat(store, artifact, &st) == 0)
		return 0;
	/* a lower store may have it */
	r = bid_lookup_file(store, artifact, &file);
	bid_file_release(&file);
	return r;
}

/* Change "how" of the record, as bid_record_set_how(), if the artifact still exists. */
static int set_how(struct bid_store *store, const struct bid_artifact *artifact, const char *from, const char *to)
{
	bid_auto_fd int lock = bid_store_lock(store, true);
	int r = look_again(store, artifact);

	if (r == 0)
		r = bid_record_set_how(store, artifact, from, to);
	return r == -ENOENT ? look_again(store, artifact) : r;
}

int bid_store_mark_added(struct bid_store *store, const struct bid_artifact *artifact)
{
	/* most are the user's already */
	return bid_store_is_download(store, artifact) ? set_how(store, artifact, NULL, BID_ADDED) : look_again(store, artifact);
}

int bid_store_pin(struct bid_store *store, const struct bid_artifact *artifact, bool pin)
{
	return set_how(store, artifact, pin ? BID_FETCHED : BID_PINNED, pin ? BID_PINNED : BID_FETCHED);
}
