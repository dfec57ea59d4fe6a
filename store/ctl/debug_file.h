/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Separate debug files of programs that were added, which lie elsewhere. */
#ifndef BID_CTL_DEBUG_FILE_H
#define BID_CTL_DEBUG_FILE_H

#include "ctl/running.h"

/* Programs whose debug files are to be looked for, because they may come by themselves yet. Begin with a zeroed one. */
struct ctl_debug_files {
	struct ctl_debug_of {
		struct bid_id id;
		char *path; /* of the program, absolute; owned */
	} * of; /* owned */
	size_t n, room;
	bool scanned; /* with all of their directories: what lies beside one of them has come by itself, if it is of use */
};

void ctl_debug_files_release(struct ctl_debug_files *files);

/* The program @path is in the store as @id. Returns 0 or -ENOMEM. */
int ctl_debug_files_want(struct ctl_debug_files *files, const char *path, const struct bid_id *id);

/*
 * Add the debug file of each that has none in the store: below /usr/lib/debug by its build-id, or by its name, which the program's
 * .gnu_debuglink says (gdb, "Debugging Information in Separate Files"). Only one with the same build-id is taken, and by its name
 * only with the link's checksum. One without an id is refused, whatever its checksum: nobody who reads by build-id could use it.
 * Returns 0 or a negative errno of trouble.
 */
int ctl_debug_files_add(const struct ctl_debug_files *files, struct ctl_tally *tally, struct bid_store *store);

#endif
