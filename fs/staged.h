/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that are being written through the mount: each has a name in a directory "<path>/ID", and no place in the store until it is
 * published. Pure C: knows no FUSE.
 */
#ifndef BID_FS_STAGED_H
#define BID_FS_STAGED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <bid/write.h>

struct bid_staging;

/* One of them. The fields do not change, but for the last two. */
struct bid_staged {
	uint32_t serial; /* no two ever have the same, from 1 on */
	uint64_t parent; /* the inode number of its directory */
	struct bid_id id; /* of its directory */
	char *dir; /* relative to the store, "usr/bin/ls/ID"; owned */
	char *name; /* in dir; owned */
	struct bid_stage *stage; /* owned */
	_Atomic int64_t judged; /* when it had been changed as it was refused last, in ns of the wall clock; 0 */
	_Atomic bool ended; /* it has no name here any more */
};

/* @max_ended is how many are kept of those that have no name any more. */
int bid_staging_new(unsigned max_ended, struct bid_staging **ret_staging);
void bid_staging_free(struct bid_staging *staging);

/*
 * Begin the file @name in the directory @dir of @id, whose inode number is @parent. Returns 0, -EEXIST, -ENOMEM, or as
 * bid_stage_new(). The caller gives @ret_staged back with bid_staged_put(), as of the next three.
 */
int bid_staging_begin(struct bid_staging *staging, struct bid_store *store, const struct bid_id *id, uint64_t parent,
		      const char *dir, const char *name, struct bid_staged **ret_staged);

/* Was a file of @id the last that was begun, a moment ago? */
bool bid_staging_is_latest(struct bid_staging *staging, const struct bid_id *id);

/* The one of that number, also after its end, or of that name; NULL if there is none. */
struct bid_staged *bid_staging_get(struct bid_staging *staging, uint32_t serial);
struct bid_staged *bid_staging_find(struct bid_staging *staging, const char *dir, const char *name);

/* The one with the next number after @serial; NULL if there is none. To look at them so is not to touch them. */
struct bid_staged *bid_staging_next(struct bid_staging *staging, uint32_t serial);

/* One that nobody has touched for so many seconds, nor, with @unopened, has open for writing; NULL if there is none. */
struct bid_staged *bid_staging_idle(struct bid_staging *staging, unsigned seconds, bool unopened);

/*
 * The file of that number was opened for writing by the thread @who, and what was opened so is gone, with all its descriptors: was
 * it the last? Nobody writes to it then.
 */
void bid_staging_opened(struct bid_staging *staging, uint32_t serial, pid_t who);
bool bid_staging_closed(struct bid_staging *staging, uint32_t serial);

/* Did @who open it, and nobody since? Another who closes a descriptor of it has inherited that. */
bool bid_staging_is_writer(struct bid_staging *staging, uint32_t serial, pid_t who);

/*
 * It has no name any more. By its number it stays until bid_staging_forget(), because who has it open may go on; of many, those
 * that were used last.
 */
void bid_staging_end(struct bid_staging *staging, struct bid_staged *staged);

/* It has neither name nor number any more, and is gone with its last user. */
void bid_staging_drop(struct bid_staging *staging, struct bid_staged *staged);

/* The same of all in the directory @dir, or (@unopened) of those that nobody has open for writing. */
void bid_staging_drop_in(struct bid_staging *staging, const char *dir, bool unopened);

/* Nobody knows the number any more: if the file has no name either, it is gone with its last user. */
void bid_staging_forget(struct bid_staging *staging, uint32_t serial);

/* @staged may be NULL. */
void bid_staged_put(struct bid_staging *staging, struct bid_staged *staged);

#endif
