/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Temporary files that programs write through the mount. Each has a name in a directory "<path>/ID" of the mount, and none in the
 * store before it is published (publish.h). It lives as long as it has its name, an open handle or another user. Pure C: knows no
 * FUSE.
 *
 * Locking: bid_staging has one lock, held for lists and counters alone. Any thread may call.
 */
#ifndef BID_FS_STAGED_H
#define BID_FS_STAGED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <bid/write.h>

#include "vfs/node.h"

struct bid_staging;

/* One temporary file. The fields do not change. */
struct bid_staged {
	uint32_t serial; /* unique, from 1 on */
	struct bid_id id; /* of its directory */
	char *dir; /* relative to the store, "usr/bin/ls/ID"; owned */
	char *name; /* in dir; owned */
	struct bid_stage *stage; /* owned */
};

int bid_staging_new(struct bid_staging **ret_staging);
void bid_staging_free(struct bid_staging *staging);

/*
 * Begin the file @name in the directory @dir of @id. Returns 0, -EEXIST, -ENOMEM, or as bid_stage_new(). The caller gives
 * @ret_staged back with bid_staged_put(), as those of the next functions.
 */
int bid_staging_begin(struct bid_staging *staging, struct bid_store *store, const struct bid_id *id, const char *dir,
		      const char *name, struct bid_staged **ret_staged);

/* Find the file by its serial, also without a name, or by its name. NULL if there is none. */
struct bid_staged *bid_staging_get(struct bid_staging *staging, uint32_t serial);
struct bid_staged *bid_staging_find(struct bid_staging *staging, const char *dir, const char *name);

/* The name of @dir among the directories of written files; perhaps in @buf. */
enum { BID_STAGING_DIR = sizeof(".build-id/00") };
const char *bid_staging_dir(const struct bid_node *dir, char buf[static BID_STAGING_DIR]);

/* Find a file with a name that nobody has used for so many seconds, nor has open for writing. NULL if there is none. */
struct bid_staged *bid_staging_idle(struct bid_staging *staging, unsigned seconds);

/* Find a file with a name, whoever uses it. NULL if there is none. */
struct bid_staged *bid_staging_first(struct bid_staging *staging);

/* Another user of @staged, which is returned. */
struct bid_staged *bid_staged_ref(struct bid_staging *staging, struct bid_staged *staged);

/* The thread @tid opened @staged for writing; a handle for writing was released: was it the last? */
void bid_staged_open(struct bid_staging *staging, struct bid_staged *staged, pid_t tid);
bool bid_staged_close(struct bid_staging *staging, struct bid_staged *staged);

/* Has @tid the only handle for writing? A process that inherited the descriptor is another. */
bool bid_staged_is_writer(struct bid_staging *staging, struct bid_staged *staged, pid_t tid);

/* Take away the name, if it still has it. */
void bid_staged_unname(struct bid_staging *staging, struct bid_staged *staged);

bool bid_staged_has_name(struct bid_staging *staging, struct bid_staged *staged);

/* Call @fn, with the lock held, for each named file in the directory @dir. A non-zero return ends it and is returned. */
int bid_staging_each_in(struct bid_staging *staging, const char *dir, int (*fn)(void *user, const struct bid_staged *staged),
			void *user);

/* Has the directory @dir a named file, with @written one that somebody has open for writing? */
bool bid_staging_has_in(struct bid_staging *staging, const char *dir, bool written);

/* Take away the names of all files in the directory @dir. */
void bid_staging_unname_in(struct bid_staging *staging, const char *dir);

/* @staged may be NULL. */
void bid_staged_put(struct bid_staging *staging, struct bid_staged *staged);

#endif
