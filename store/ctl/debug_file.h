/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Separate debug files of added programs, in other places than the programs. */
#ifndef BID_CTL_DEBUG_FILE_H
#define BID_CTL_DEBUG_FILE_H

#include "ctl/add_mapped_code.h"

/* Added programs to search debug files for. A scan may still add them by itself. Start with a zeroed struct. */
struct ctl_debug_files {
	struct ctl_debug_of {
		struct bid_id id;
		char *path; /* path of the program; owned */
	} * of; /* owned */
	size_t n, room;
};

void ctl_debug_files_release(struct ctl_debug_files *files);

/* Note that the program @path is in the store as @id. Returns 0 or -ENOMEM. */
int ctl_debug_files_want(struct ctl_debug_files *files, const char *path, const struct bid_id *id);

/*
 * Add the debug file of each program without one in the store. Its place below /usr/lib/debug follows from the build-id, or from
 * the name in the program's .gnu_debuglink (gdb, "Debugging Information in Separate Files").
 * A debug file must have the same build-id; one found by its name also needs the checksum of the link. A file without a build-id is
 * refused whatever its checksum, because no reader by build-id can use it.
 * Returns 0, or a negative errno of the store.
 */
int ctl_debug_files_add(const struct ctl_debug_files *files, struct ctl_add_stats *stats, struct bid_store *store);

/* As ctl_debug_files_add(), without a report of the files: a mismatched debug file counts as absent, as in perf. */
int ctl_debug_files_add_quietly(const struct ctl_debug_files *files, const struct ctl *ctl, struct bid_store *store);

#endif
