/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "list", "show" and "remove" for files kept without a build-id. */
#ifndef BID_CTL_CONTENT_KEYS_H
#define BID_CTL_CONTENT_KEYS_H

#include "api/remove.h"
#include "ctl/ctl.h"

/* Run "list --content-keys". A NULL @store is an empty one. */
enum ctl_status ctl_list_content_keys(const struct ctl *ctl, struct bid_store *store);

/* Show all content keys of the absolute path @path, and count them. A NULL @store is an empty one. */
enum ctl_status ctl_show_content_keys(const struct ctl *ctl, struct bid_store *store, const char *path, size_t *ret_n);

/* Selection of the content keys to remove, and the operand behind it. */
struct ctl_content_keys {
	const char *path; /* absolute; NULL: any */
	const char *name; /* NULL: any */
	const char *operand;
};

/* Print the row of a removed build or content key, @id or @key, for @operand: with --json, --verbose or --dry-run. */
void ctl_removed(const struct ctl *ctl, const char *operand, const struct bid_id *id, const char *key,
		 const struct bid_removal *removal);

/* Totals of removed artifacts. */
struct ctl_taken {
	size_t n;
	uint64_t size; /* bytes */
};

/* Remove and report the selected content keys, add them to @taken, and count them. Returns CTL_DONE also for none. */
enum ctl_status ctl_remove_content_keys(const struct ctl *ctl, struct bid_store *store, const struct ctl_content_keys *which,
					struct ctl_taken *taken, size_t *ret_n);

#endif
