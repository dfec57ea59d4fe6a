/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The distinct combinations of id, mode and path in a recording. */
#ifndef BID_PERFDATA_DSOS_H
#define BID_PERFDATA_DSOS_H

#include "api/perfdata.h"

#define BID_DSOS_MAX	   (4u << 20)
#define BID_DSOS_NAMES_MAX (256u << 20) /* bytes */

/* All zero is empty. */
struct bid_dsos {
	void *tree; /* tree of struct bid_perfdata_dso, tsearch(3); owned */
	size_t n;
	size_t names; /* bytes of all names */
};

void bid_dsos_release(struct bid_dsos *dsos);

/*
 * Add a combination, if it is a new one. @id may be of len 0. @ret_dso lives as long as @dsos, and the caller counts its samples
 * and mapped bytes in it. Returns 0, -E2BIG or -ENOMEM.
 */
int bid_dsos_add(struct bid_dsos *dsos, const struct bid_id *id, bool sized, enum bid_perfdata_mode mode, const char *path,
		 size_t len, struct bid_perfdata_dso **ret_dso);

/*
 * Call @fn for each dso in order. Leaves out a dso without an id if its path has one in another dso, and a dso whose id is another
 * id with padding; the other dso gets the samples. Call it once. Adds to @count. Returns 0, the result of @fn, or -ENOMEM.
 */
int bid_dsos_each(const struct bid_dsos *dsos, bid_perfdata_fn fn, void *user, uint64_t *count);

#endif
