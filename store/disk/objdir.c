// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where the artifacts of an id lie in one store. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "disk/layout.h"
#include "disk/one.h"
#include "disk/root.h"
#include "disk/store.h"

bool bid_alien_is_there(struct bid_store *store, const struct bid_alien *alien)
{
	bid_auto_fd int fd = -1;
	struct stat st;

	return bid_store_open_linked(store, alien->path, O_PATH, &fd) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size > 0;
}

int bid_one_alien_kinds(struct bid_store *store, const struct bid_id *filed)
{
	struct bid_alien alien = { 0 };
	int kinds = 0;

	while (bid_store_flags(store) & BID_STORE_LOWER && bid_alien_next(&alien, filed, BID_KIND_NONE))
		kinds |= bid_alien_is_there(store, &alien) ? 1 << alien.kind : 0;
	return kinds;
}
