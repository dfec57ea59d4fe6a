/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What "list", "show" and "remove" do with files that are kept without a build-id. */
#ifndef BID_CTL_COOKIES_H
#define BID_CTL_COOKIES_H

#include <jansson.h>

#include "ctl/ctl.h"

struct ctl_array;

/* What "list --cookies" does. @store may be NULL for an empty one. */
enum ctl_status ctl_list_cookies(const struct ctl *ctl, struct bid_store *store);

/* Show all cookies of the absolute path @path, with --json in @array, and count them. @store may be NULL. */
enum ctl_status ctl_show_cookies(const struct ctl *ctl, struct bid_store *store, const char *path, struct ctl_array *array,
				 size_t *ret_n);

/* Which cookies "remove" is to remove, and what asked for it. */
struct ctl_cookies {
	const char *path; /* absolute; NULL: any */
	const char *name; /* NULL: any */
	const char *operand;
};

/* What was removed, all in all. */
struct ctl_taken {
	size_t n;
	uint64_t size; /* bytes */
};

/* Remove them, add to @removed an object for each, and count them into @taken. Returns CTL_DONE also if there are none. */
enum ctl_status ctl_remove_cookies(const struct ctl *ctl, struct bid_store *store, const struct ctl_cookies *which, json_t *removed,
				   struct ctl_taken *taken);

#endif
