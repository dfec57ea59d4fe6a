/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Temporary files of writers. Where the file system permits, a file has no name before it is published, so a crash leaves nothing.
 * Elsewhere it has a name in ".bidfs/tmp". The next writer that opens the store sweeps files without a change for a day.
 */
#ifndef BID_DISK_TEMP_H
#define BID_DISK_TEMP_H

#include "api/store.h"

enum { BID_TEMP_NAME_MAX = 32 };

struct bid_temp {
	int fd; /* O_RDWR; -1 in a released one */
	int dir; /* ".bidfs/tmp", of one with a name; else -1 */
	char name[BID_TEMP_NAME_MAX]; /* name in dir; "" without a name */
};

#define BID_TEMP_NONE ((struct bid_temp){ .fd = -1, .dir = -1 })

/* For bid_temp_link() alone: the file open at @file, whatever its names. */
#define BID_TEMP_OF(file) (&(const struct bid_temp){ .fd = (file), .dir = -1 })

/* Open a temporary file; with @named it has a name on any file system. */
int bid_temp_new(struct bid_store *store, bool named, struct bid_temp *ret_temp);

/* Link the file as @name in @dir. Returns -EEXIST for a taken name. */
int bid_temp_link(const struct bid_temp *temp, int dir, const char *name);

/*
 * Link the file as @path below the store, whose missing directories it makes. With @replace it takes the place of another file;
 * without, returns -EEXIST for a taken name.
 */
int bid_temp_publish(const struct bid_temp *temp, struct bid_store *store, const char *path, bool replace);

/*
 * Write the file @name in @dir, of our private folder, mode 0644; with @replace in place of another one, and else -EEXIST, which is
 * much cheaper.
 */
int bid_temp_write(struct bid_store *store, const void *data, size_t len, int dir, const char *name, bool replace);

/*
 * Bytes to make room for after a write of @more bytes met a full disk: as much again as the file has on the disk, because a program
 * may write far behind its end.
 */
uint64_t bid_temp_wanted_room(const struct bid_temp *temp, uint64_t more);

void bid_temp_release(struct bid_temp *temp);

/* Make a name in ".bidfs/tmp" for a file or link that replaces another one by rename(2). */
int bid_temp_name(char ret_name[static BID_TEMP_NAME_MAX]);

/* Is @name a name of bid_temp_name()? */
bool bid_temp_is_named(const char *name);

/* Is @name in @dir unchanged for a day? With @remove, remove it and return whether that worked. */
bool bid_temp_is_abandoned(int dir, const char *name, bool remove);

/* Remove the files that are unchanged for a day from the open directory @dir. */
void bid_temp_sweep(int dir);

#endif
