/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Directories "<path>/ID" of builds that were removed through the mount. A build goes with perf's link, all of it at once, but perf
 * then looks at the directory, opens it, empties it and removes it, and fails if it is gone after the first of these. So it is
 * answered for, empty, until it is removed too: for a while only, as whoever removed the link may have wanted nothing else. Nothing
 * of that is in the store. Any number of threads may use one. Pure C: knows no FUSE.
 */
#ifndef BID_FS_LEAVING_H
#define BID_FS_LEAVING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BID_LEAVING_MS	60000
#define BID_LEAVING_MAX 16 /* at once; of more, the one that was removed first is forgotten */
#define BID_REMOVED_MAX 256 /* the same */

struct bid_leaving {
	pthread_mutex_t lock; /* guards everything below */
	unsigned next; /* the one to forget */
	struct bid_leaving_dir {
		char *path; /* relative to the store; owned; NULL if there is none */
		int64_t until_ms; /* on the clock of the callers */
	} dirs[BID_LEAVING_MAX];
	uint64_t removed[BID_REMOVED_MAX]; /* numbers of directories */
	uint64_t n_removed; /* ever */
};

void bid_leaving_init(struct bid_leaving *leaving);

void bid_leaving_release(struct bid_leaving *leaving);

/* The build of the directory @path is removed, at @now_ms on a clock that never goes back. Without memory nothing is kept. */
void bid_leaving_begin(struct bid_leaving *leaving, const char *path, int64_t now_ms);

/* @path is removed itself. */
void bid_leaving_end(struct bid_leaving *leaving, const char *path);

/* Is @path one of them, or a directory above one, at @now_ms? */
bool bid_leaving_has(struct bid_leaving *leaving, const char *path, int64_t now_ms);

/* The directory of that number was removed by rmdir(2). */
void bid_leaving_removed(struct bid_leaving *leaving, uint64_t number);

/*
 * Another one after each such time; 0 before. The kernel may still hold the inode, in which nothing can be made ever again. The
 * number is a function of the name, so whoever makes the directory anew would get that, were the generation not another.
 */
uint64_t bid_leaving_generation(struct bid_leaving *leaving, uint64_t number);

#endif
