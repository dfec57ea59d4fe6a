// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/dwz.h"

#include "api/elf.h"
#include "base/cleanup.h"

struct bid_id ctl_dwz_of(struct bid_store *store, const struct bid_id *id)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_request request = { .id = *id, .kind = BID_KIND_DEBUGINFO };
	struct bid_elf_info info;

	if (bid_store_find(store, &request, &file) < 0 || bid_elf_examine(file.fd, &info) < 0)
		return (struct bid_id){ 0 };
	return info.alt;
}
