// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/foreign_layout.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "disk/store.h"

bool bid_foreign_next(struct bid_foreign *foreign, const struct bid_id *id, enum bid_kind kind)
{
	static const struct {
		enum bid_kind kind;
		bool in_fanout;
		const char *name;
	} names[] = {
		{ BID_KIND_DEBUGINFO, true, "debug" },
		{ BID_KIND_ELF, true, "" },
		{ BID_KIND_DEBUGINFO, false, "debuginfo" },
		{ BID_KIND_ELF, false, "executable" },
	};
	char hex[BID_ID_HEX_MAX];

	for (; foreign->step < sizeof(names) / sizeof(names[0]); foreign->step++) {
		if (kind != BID_KIND_NONE && kind != names[foreign->step].kind)
			continue;
		foreign->kind = names[foreign->step].kind;
		foreign->is_download = !names[foreign->step].in_fanout;
		if (!foreign->is_download)
			bid_layout_fanout_path(BID_LAYOUT_LINKS, id, names[foreign->step].name, foreign->path);
		else
			snprintf(foreign->path, sizeof(foreign->path), "%s/%s", bid_id_format(id, hex), names[foreign->step].name);
		foreign->step++;
		return true;
	}
	return false;
}

bool bid_foreign_is_there(struct bid_store *store, const struct bid_foreign *foreign)
{
	bid_auto_fd int fd = -1;
	struct stat st;

	return !(foreign->is_download && bid_store_requires_signed(store)) &&
	       bid_store_open_linked(store, foreign->path, O_PATH, &fd) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size > 0;
}

int bid_foreign_kinds(struct bid_store *store, const struct bid_id *disk_id)
{
	struct bid_foreign foreign = { 0 };
	int kinds = 0;

	while (bid_store_is_lower(store) && bid_foreign_next(&foreign, disk_id, BID_KIND_NONE))
		kinds |= bid_foreign_is_there(store, &foreign) ? 1 << foreign.kind : 0;
	return kinds;
}
