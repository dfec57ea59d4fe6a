// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/known.h"

#include <stdio.h>
#include <string.h>

#include <bid/error.h>

#include "base/access.h"
#include "base/io.h"
#include "base/log.h"
#include "disk/find.h"
#include "disk/publish/replace.h"

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Does everybody read the file to be added, and not what is the same in the store? */
static bool opens(const struct bid_adding *adding, const struct bid_file *file, mode_t mode)
{
	return bid_all_read(mode) && !bid_all_read(file->st.st_mode) && !adding->packed && adding->st.st_size == file->st.st_size &&
	       bid_same_bytes(adding->fd, file->fd) == 1;
}

void bid_known_mend(struct bid_store *store, const struct bid_adding *adding, const struct bid_file *file)
{
	struct bid_request request = { .id = adding->added.id, .kind = adding->added.kind };
	bool linked = is_same(&file->st, &adding->st), gives = bid_rights_given(file->fd, &file->st);
	/* the file to be added has a name of its own */
	struct bid_rights rights = { .mode = bid_adding_mode(store, adding), .elsewhere = linked };
	char hex[BID_ID_HEX_MAX];
	struct stat st;
	int r;

	/* perf links what gives rights, too; and what a lower store has is not ours to change */
	if ((!gives && !opens(adding, file, rights.mode)) || bid_find_stat(store, &request, &st) < 0 || !is_same(&st, &file->st))
		return;
	if (gives && !linked)
		rights.mode = file->st.st_mode;
	r = bid_rights_take(store, &request, file->fd, &rights);
	if (r < 0)
		bid_warning("%s: '%s' has other rights in the store '%s' than where it is, and no copy with its own could be made",
			    bid_strerror(r), bid_id_format(&request.id, hex), bid_store_path(store));
}
