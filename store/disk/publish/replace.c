// SPDX-License-Identifier: LGPL-2.1-or-later
/* Replacement of the store's file of a build. */
#include <errno.h>
#include <unistd.h>

#include "api/remove.h"
#include "base/cleanup.h"
#include "base/stat_data.h"
#include "disk/find.h"
#include "disk/publish/ingest.h"
#include "disk/publish/relink.h"
#include "disk/record.h"
#include "disk/store.h"

/* Replace the stored artifact. */
static int update_file(struct bid_store *store, struct bid_ingest *ingest, bool *ret_replaced)
{
	const struct bid_elf_info *info = &ingest->info;
	struct bid_request request = { .id = info->id };
	bid_cleanup(bid_file_release) struct bid_file stored = BID_FILE_NONE;
	int r;

	request.kind = !info->has_code && (info->has_dwarf || info->has_symtab) ? BID_KIND_DEBUGINFO : BID_KIND_ELF;
	if (bid_find_stored(store, &request, &stored) < 0 || stored.kind != request.kind)
		return 0;
	/* a hard link is the file already */
	r = bid_same_inode(&stored.st, &ingest->st) ? 1 : bid_ingest_fill(store, ingest, false, BID_DURABLE_EACH);
	if (r == 0)
		r = bid_replace(store, &request, NULL, NULL, ingest->temp.fd);
	*ret_replaced = r > 0;
	/* it is of the bytes from before */
	if (r > 0)
		bid_record_drop(store, &request);
	return r < 0 ? r : 0;
}

int bid_store_update(struct bid_store *store, const char *path, enum bid_link link, struct bid_added *ret_added, bool *ret_replaced)
{
	struct bid_add add = { .path = path, .fd = -1 };
	struct bid_ingest ingest = { .fd = -1, .temp = BID_TEMP_NONE };
	struct bid_added added = { 0 };
	bool replaced = false, own = false;
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_ingest_open(&add, &ingest);
	/* a file of the store replaces neither itself nor the source that its record names */
	if (r == 0)
		own = replaced = bid_ingest_is_own(store, &ingest);
	/* a named temporary file that no sweep removes, whatever its other names */
	if (r == 0)
		r = bid_temp_new(store, true, &ingest.temp);
	if (r == 0)
		r = bid_ingest_examine(store, &ingest);
	if (r == 0 && !own)
		r = update_file(store, &ingest, &replaced);
	bid_ingest_release(&ingest);
	/* now the file needs only its own name, unless the build is new */
	if (r == 0)
		r = bid_store_add(store, path, link, &added);
	if (r < 0)
		return r;
	*ret_added = added;
	*ret_replaced = replaced;
	return 0;
}
