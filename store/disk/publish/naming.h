/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A build that lay with the nameless, because its debug file came first or it was fetched, gets the path that it is added from. */
#ifndef BID_DISK_NAMING_H
#define BID_DISK_NAMING_H

#include <bid/store.h>

/* Is @place one of those who have no path? */
bool bid_is_nameless(const char *place);

/*
 * perf's link for @id leads to the nameless, and its ELF file, or a kernel's table, lies at @path, "usr/bin/ls/ID": all else goes
 * there, the link leads there, and then the nameless have none of it. Readers find all of it at any moment, and after a crash.
 * Returns 0, -EBADMSG if what is at @path is not right, or an error with which some of it may have been done.
 */
int bid_name_nameless(struct bid_store *store, const struct bid_id *id, const char *path, bool durable);

#endif
