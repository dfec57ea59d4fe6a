/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "list", "show" and "remove" for files kept without a build-id. */
#ifndef BID_CTL_COOKIES_H
#define BID_CTL_COOKIES_H

#include <jansson.h>

#include "ctl/ctl.h"

struct ctl_array;

/* Run "list --cookies". A NULL @store is an empty one. */
enum ctl_status ctl_list_cookies(const struct ctl *ctl, struct bid_store *store);

/* Show all cookies of the absolute path @path, with --json in @array, and count them. A NULL @store is an empty one. */
enum ctl_status ctl_show_cookies(const struct ctl *ctl, struct bid_store *store, const char *path, struct ctl_array *array,
				 size_t *ret_n);

/* Selection of the cookies to remove, and the operand behind it. */
struct ctl_cookies {
	const char *path; /* absolute; NULL: any */
	const char *name; /* NULL: any */
	const char *operand;
};

/* Totals of removed artifacts. */
struct ctl_taken {
	size_t n;
	uint64_t size; /* bytes */
};

/* Remove the selected cookies, add an object for each to @removed, and count them into @taken. Returns CTL_DONE also for none. */
enum ctl_status ctl_remove_cookies(const struct ctl *ctl, struct bid_store *store, const struct ctl_cookies *which, json_t *removed,
				   struct ctl_taken *taken);

#endif
