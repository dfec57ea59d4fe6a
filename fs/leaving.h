/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Builds whose link was removed through the mount. perf then opens the directory "<path>/ID", empties it and removes it, and with
 * that the build goes, all of it at once. Whoever unpacks an archive, or copies a store onto another, makes the link anew instead,
 * and nothing is to be lost. So until the one or the other the link is hidden and the directory shown empty: for a while only, as
 * somebody may do neither. Nothing of that is in the store. Any number of threads may use one. Pure C: knows no FUSE.
 */
#ifndef BID_FS_LEAVING_H
#define BID_FS_LEAVING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <bid/id.h>

#define BID_LEAVING_MS	60000
#define BID_LEAVING_MAX 16 /* at once; of more, the one that was removed first is forgotten */
#define BID_REMOVED_MAX 256 /* the same */

struct bid_leaving {
	pthread_mutex_t lock; /* guards everything below */
	unsigned next; /* the one to forget */
	struct bid_leaving_build {
		struct bid_id id; /* of the link; of no bytes if there is none */
		char *path; /* where that leads, relative to the store; owned; NULL if nothing is to go */
		int64_t until_ms; /* on the clock of the callers */
	} builds[BID_LEAVING_MAX];
	unsigned next_bare; /* the one of the following to forget */
	struct bid_leaving_probes {
		struct bid_id id;
		int64_t until_ms;
	} bare[BID_LEAVING_MAX]; /* builds whose probe definitions were removed */
	uint64_t removed[BID_REMOVED_MAX]; /* numbers of directories */
	uint64_t n_removed; /* ever */
};

void bid_leaving_init(struct bid_leaving *leaving);

void bid_leaving_release(struct bid_leaving *leaving);

/*
 * The link of @id, to the directory @path, is removed, at @now_ms on a clock that never goes back. Without a path, or memory, it is
 * only hidden.
 */
void bid_leaving_begin(struct bid_leaving *leaving, const struct bid_id *id, const char *path, int64_t now_ms);

/* It is made anew. Was it hidden? */
bool bid_leaving_cancel(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms);

/* The directory @path is removed as well. Is that so of a link's? Then @ret_id is what is to go. */
bool bid_leaving_end(struct bid_leaving *leaving, const char *path, int64_t now_ms, struct bid_id *ret_id);

/* Is the link of @id hidden? */
bool bid_leaving_hides(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms);

/* Is @path one of those directories? */
bool bid_leaving_empties(struct bid_leaving *leaving, const char *path, int64_t now_ms);

/* The same, or one above. */
bool bid_leaving_has(struct bid_leaving *leaving, const char *path, int64_t now_ms);

/*
 * The probe definitions of @id are removed. Whoever looks for them has them made again, if the program has static ones; and who
 * removes what is in his way, to write another file of that name, would never find room. So for a while there are none.
 */
void bid_leaving_probes(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms);

/* Others are made. Was that so? */
bool bid_leaving_probes_cancel(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms);

/* Is it? */
bool bid_leaving_hides_probes(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms);

/* The directory of that number was removed by rmdir(2). */
void bid_leaving_removed(struct bid_leaving *leaving, uint64_t number);

/*
 * Another one after each such time; 0 before. The kernel may still hold the inode, in which nothing can be made ever again. The
 * number is a function of the name, so whoever makes the directory anew would get that, were the generation not another.
 */
uint64_t bid_leaving_generation(struct bid_leaving *leaving, uint64_t number);

#endif
