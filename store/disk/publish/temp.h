/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that are being written. Where the file system can, they have no name until they are published, so that nothing stays behind
 * whatever happens. Elsewhere they have a name in ".bidfs/tmp" and hold an flock(2) as long as their writer lives, by which the
 * next writer knows what it may sweep away. On NFS and its like, where other machines may write whose locks are not seen here, it
 * must also have lain still for a day.
 */
#ifndef BID_DISK_TEMP_H
#define BID_DISK_TEMP_H

#include "api/store.h"

struct bid_temp {
	int fd; /* O_RDWR; -1 in a released one */
	int dir; /* ".bidfs/tmp", of one with a name; else -1 */
	char name[32]; /* in dir; "" if it has none */
};

#define BID_TEMP_NONE ((struct bid_temp){ .fd = -1, .dir = -1 })

/* With @named it gets a name in any case, which bid_temp_replace() needs. */
int bid_temp_new(struct bid_store *store, bool named, struct bid_temp *ret_temp);

/* Give the file the name @name in @dir. -EEXIST if that name is taken. */
int bid_temp_link(struct bid_temp *temp, int dir, const char *name);

/*
 * The same for a named one in our private folder, in the place of whatever has the name now: a directory with something in it goes
 * to the quarantine.
 */
int bid_temp_replace(struct bid_store *store, struct bid_temp *temp, int dir, const char *name);

void bid_temp_release(struct bid_temp *temp);

/* Is @name one of those that bid_temp_new() makes? */
bool bid_temp_is_named(const char *name);

/* Does no living process write @name in @dir? With @remove it is removed then, and the question is whether it was. */
bool bid_temp_is_abandoned(int dir, const char *name, bool remove);

/* Remove from the open directory @dir what no living process writes. */
void bid_temp_sweep(int dir);

#endif
