/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Another file in the place of one that the store has, under each of its names. */
#ifndef BID_DISK_REPLACE_H
#define BID_DISK_REPLACE_H

#include "api/store.h"

/*
 * Let the file open at @fd be what the store has of @request, under every name, or with @only under those of the file with these
 * attributes. Looks through the whole store. On return of 0 it is on disk.
 */
int bid_replace(struct bid_store *store, const struct bid_request *request, const struct stat *only, int fd);

/* How many names, and of those how many of other files than the one with @st, bid_replace() would replace without @only? */
int bid_replaceable(struct bid_store *store, const struct bid_request *request, const struct stat *st, unsigned *ret_names,
		    unsigned *ret_others);

/*
 * Would the file open at @fd, with @st, give rights to whoever runs it: is it setuid or setgid, or has it capabilities? A hard link
 * in the store keeps it alive when it is replaced because it is unsafe; and it may have come to that after it was linked.
 */
bool bid_rights_given(int fd, const struct stat *st);

enum { BID_NAMES_ANY = 1 << 30 }; /* more than a file can have */

struct bid_rights {
	mode_t mode; /* of the copy: see bid_set_readers() */
	const char *path; /* a name of the file that nothing may lead to, or NULL */
	nlink_t elsewhere; /* how many names it may have that are not to be looked for */
};

/*
 * Put a copy without them in the place of the file of @request that is open at @fd, under the names that are known: where perf's
 * link leads, those that were noted, and that of @rights. If the file has more names left then than may be elsewhere, the whole
 * store is looked through for them. On return of 0 it is on disk.
 */
int bid_rights_take(struct bid_store *store, const struct bid_request *request, int fd, const struct bid_rights *rights);

#endif
