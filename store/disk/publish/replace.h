/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Replacement of a stored file under each of its names. */
#ifndef BID_DISK_REPLACE_H
#define BID_DISK_REPLACE_H

#include "api/store.h"

/*
 * Replace the store's file of @request by the file at @fd under every name; with @only, only the file with these attributes. Runs a
 * dirwalk through the store. The result is on disk on return of 0.
 */
int bid_replace(struct bid_store *store, const struct bid_request *request, const struct stat *only, int fd);

/*
 * Count the names that bid_replace() would replace without @only, and the names of other files than the file with @st among them.
 */
int bid_replaceable(struct bid_store *store, const struct bid_request *request, const struct stat *st, unsigned *ret_names,
		    unsigned *ret_others);

/*
 * Does the file at @fd, with @st, grant privileges: setuid, setgid or capabilities? A hard link in the store keeps such a file
 * alive after an update for security. A file may get privileges after its link.
 */
bool bid_rights_given(int fd, const struct stat *st);

enum { BID_NAMES_ANY = 1 << 30 }; /* more than a file can have */

struct bid_rights {
	mode_t mode; /* mode of the copy: see bid_set_readers() */
	const char *path; /* a name of the file without a link to it, or NULL */
	nlink_t elsewhere; /* number of names that need no search */
};

/*
 * Replace the file of @request at @fd by a copy without privileges, under the known names: the target of perf's link, the recorded
 * names, and the name in @rights. If the file then has more names left than @rights->elsewhere, search the whole store for them.
 * The copy is on disk on return of 0.
 */
int bid_rights_take(struct bid_store *store, const struct bid_request *request, int fd, const struct bid_rights *rights);

#endif
