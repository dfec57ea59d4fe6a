// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/kept.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "disk/layout.h"
#include "disk/root.h"
#include "disk/store.h"

int bid_kept_put(struct bid_store *store, const char *folder, const struct bid_id *id, struct bid_temp *temp)
{
	char path[BID_LAYOUT_MAX], hex[BID_ID_HEX_MAX];
	bid_auto_fd int dir = -1;
	int r;

	if (fsync(temp->fd) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/%02x", folder, id->bytes[0]);
	r = bid_root_mkdirs(bid_store_root(store), path, false, &dir);
	if (r < 0)
		return r;
	bid_id_format(id, hex);
	r = bid_temp_link(temp, dir, hex + 2);
	if (r == -EEXIST && unlinkat(dir, hex + 2, 0) == 0)
		r = bid_temp_link(temp, dir, hex + 2);
	return r;
}
