/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file on its way into the store, in steps, for those that add many: begun, examined, placed, and if placing only prepared it,
 * finished. All of it for one thread at a time; the steps of one file may be in several threads.
 */
#ifndef BID_DISK_INGEST_H
#define BID_DISK_INGEST_H

#include <limits.h>

#include "api/elf.h"
#include "api/store.h"
#include "disk/publish/temp.h"

/* When is what was added on disk? */
enum bid_durability {
	BID_DURABLE_EACH, /* on return */
	BID_DURABLE_BATCH, /* the bytes on return, their names with the next bid_store_sync() */
	/*
	 * With two of them: bid_ingest_place() only prepares a file whose bytes are new, and after a bid_store_sync()
	 * bid_ingest_finish() names it, which the next one makes durable. No name ever leads to bytes that are not on disk.
	 */
	BID_DURABLE_LATER,
};

enum bid_ingest_stage {
	BID_INGEST_BEGUN = 0,
	BID_INGEST_PREPARED, /* bid_ingest_finish() is to follow, after a bid_store_sync() */
	BID_INGEST_PLACED, /* it has its names */
};

struct bid_ingest {
	int fd; /* the file; owned if own_fd */
	bool own_fd;
	struct stat st; /* of fd, before it was examined */
	struct timespec clean_before; /* a file that was not changed since then is on disk; zero if nothing is known */
	struct bid_elf_info info;
	bool is_elf; /* its first bytes were read, and say so */
	bool is_new; /* the store had nothing of its id, a moment ago: it need not be looked for */
	bool is_fresh; /* it is known, and may be on disk only with the next bid_store_sync() */
	bool is_reached; /* everybody gets to it, or it was never anywhere but in the store: its mode alone says its class */
	bool is_staged; /* the latter */
	bool is_nameless; /* its path is not to be its name */
	bool packed; /* a compressed module: info is of what is in it, which is in temp */
	struct bid_temp temp;
	uint64_t temp_size;
	enum bid_ingest_stage stage;
	struct bid_added added; /* complete when placed */
	char path[PATH_MAX]; /* absolute: the real one, or the one to file it under */
	char where[PATH_MAX]; /* relative to the store: the directory it is to be put into */
};

/*
 * Open and examine the file that @add names. Errors as of bid_store_add(); whatever is returned, @ingest is for
 * bid_ingest_release().
 */
int bid_ingest_begin(struct bid_store *store, const struct bid_add *add, struct bid_ingest *ingest);

/* Only the first half: without having looked into it. */
int bid_ingest_open(const struct bid_add *add, struct bid_ingest *ingest);

/* Is it a file of the store itself, whose path is not the one that it came from? */
bool bid_ingest_is_own(const struct bid_store *store, const struct bid_ingest *ingest);

/* Only the second half. */
int bid_ingest_examine(struct bid_store *store, struct bid_ingest *ingest);

/* If it is the image of a vDSO, file it as that: it has the name of one, and says so itself. Before it is placed as a library. */
int bid_ingest_vdso(struct bid_store *store, struct bid_ingest *ingest);

/* Put it into the store, or with BID_DURABLE_LATER prepare that. */
int bid_ingest_place(struct bid_store *store, struct bid_ingest *ingest, enum bid_link wanted, enum bid_durability durability);

/*
 * May the store share the file's inode? Not one whose bits would outlive a security update in the store, and not one that
 * somebody may not read where it is; but what was written for the store alone is the store's.
 */
bool bid_ingest_may_link(struct bid_store *store, const struct bid_ingest *ingest);

/* The mode of a copy of the file: everybody reads it, or only who adds it. Nobody runs a copy of what gives rights. */
mode_t bid_ingest_mode(struct bid_store *store, const struct bid_ingest *ingest);

/*
 * Fill ingest->temp with the file's bytes, or share its blocks, with the mode of bid_ingest_mode(), and sync it unless that comes
 * later. The copy is of the file as it was from beginning to end, and carries the id that it was examined to have, if it was:
 * ingest->st is of what was copied. May wait for a tick of the clock, before which a change of a file that has just been written
 * would not show. Returns 0, -EAGAIN if it is being written, -EFBIG if there is room left, but not for as much, or as ioctl(2),
 * FICLONE, or pread(2) and pwrite(2).
 */
int bid_ingest_fill(struct bid_store *store, struct bid_ingest *ingest, bool reflink, enum bid_durability durability);

int bid_ingest_finish(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability);

void bid_ingest_release(struct bid_ingest *ingest);

/*
 * ingest_names.c, for ingest.c: under which names the file gets there.
 */

/*
 * Is what @ingest->added names here already? Returns 1 if so, and then it has this file's name, too, and a record; 0; or a negative
 * errno.
 */
int bid_ingest_recognise(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability);

/* What is known was perhaps put there by somebody who syncs nothing, or has not done so yet. */
int bid_ingest_sync_known(struct bid_store *store, const struct bid_ingest *ingest, enum bid_durability durability);

/*
 * Give it its names: @put, called with @ingest, makes the file @name in the directory open at @dir, and may be called for more than
 * one. Somebody else may have put the same there meanwhile, which is then known. Returns 0; what @put returned; -EBADMSG if
 * what has its place is not it and stays; or -ENOTUNIQ if that is a build whose id begins alike.
 */
int bid_ingest_publish(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability,
		       int (*put)(void *user, int dir, const char *name));

/* Does this errno only say that the file system, or the rules for links, do not have it? A deleted file is -ENOENT. */
bool bid_ingest_is_unsupported(int r);

#endif
