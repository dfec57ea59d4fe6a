/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file on its way into the store, in the steps of bid_store_add(), for callers that add many:
 *
 *   bid_ingest_begin()	opens, then examines:
 *     bid_ingest_open()
 *     bid_ingest_examine()
 *   bid_ingest_vdso()		a vDSO, else
 *   bid_ingest_store()	any file: publish it
 *   bid_ingest_release()	in any case
 *
 * A content key takes bid_ingest_open(), bid_ingest_fill() and bid_ingest_release().
 */
#ifndef BID_DISK_INGEST_H
#define BID_DISK_INGEST_H

#include <limits.h>

#include "api/elf.h"
#include "api/store.h"
#include "disk/publish/temp.h"

/* the time at which an addition is on disk */
enum bid_durability {
	BID_DURABLE_EACH, /* on return */
	BID_DURABLE_BATCH, /* with the next bid_store_sync(); before that, no name is on disk without its bytes */
};

struct bid_ingest {
	/* from the caller */
	bool by_mode; /* its mode alone decides who reads it, and not the directories above it */
	bool is_ours; /* a temporary file of the store: no other program has a name of it */
	bool is_new; /* after the examination: the store had no file of the id a moment ago, so no lookup is needed */

	/* the file, from bid_ingest_begin() */
	int fd; /* owned if own_fd */
	bool own_fd;
	bool is_unnamed; /* its path is not to be its name */
	bool packed; /* a compressed module: info describes its content, which is in temp */
	struct stat st; /* stat of fd, from before the examination */
	struct bid_elf_info info;
	struct bid_temp temp; /* its content, or its copy from bid_ingest_fill() */
	char path[PATH_MAX]; /* absolute; the real path, or the requested original path */

	/* results of bid_ingest_store() */
	bool is_fresh; /* known, but perhaps not on disk before the next bid_store_sync() */
	struct bid_added added;
	char where[PATH_MAX]; /* object directory, relative to the store */
};

/* Open and examine the file of @add. Errors as bid_store_add(); in any case the caller calls bid_ingest_release(). */
int bid_ingest_begin(struct bid_store *store, const struct bid_add *add, struct bid_ingest *ingest);

/* The first half of bid_ingest_begin(), without the store. */
int bid_ingest_open(const struct bid_add *add, struct bid_ingest *ingest);

/* The second half. */
int bid_ingest_examine(struct bid_store *store, struct bid_ingest *ingest);

/*
 * Store the image of a vDSO (bid_is_vdso_image()) as such, as bid_store_add_data(). The caller tries this first;
 * bid_ingest_store() stores the image as a library.
 */
int bid_ingest_vdso(struct bid_store *store, struct bid_ingest *ingest);

/*
 * Publish the file. If the store has the artifact, add only the file's name. Returns 0;
 * -EBADMSG if a wrong file has the name and stays; -ENOTUNIQ if a build whose id begins alike has it; or as bid_ingest_fill() and
 * link(2).
 */
int bid_ingest_store(struct bid_store *store, struct bid_ingest *ingest, enum bid_link wanted, enum bid_durability durability);

/*
 * Fill ingest->temp with the file's bytes, or share its blocks, readable by all users or by the adding user alone. Sync it unless a
 * later sync does. The copy is of one state of the file, whose stat becomes ingest->st. It carries the id of the examination, if
 * there was one. May wait for a tick of the clock: before it, a further change of a new file would not show. Returns 0, -EAGAIN
 * while another process writes the file, -EFBIG if the file is too large for the free space, or as ioctl(2), FICLONE, or pread(2)
 * and pwrite(2).
 */
int bid_ingest_fill(struct bid_store *store, struct bid_ingest *ingest, bool reflink, enum bid_durability durability);

void bid_ingest_release(struct bid_ingest *ingest);

#endif
