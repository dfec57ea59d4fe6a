/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The last stage of a scan. Workers hand over their files. The calling thread commits them in batches, many files with one
 * syncfs(2), publishes the names that a batch permits, and reports. It reports no file as added before the file is on disk.
 */
#ifndef BID_DISK_SETTLE_H
#define BID_DISK_SETTLE_H

#include "disk/publish/ingest.h"
#include "disk/scan/scan_cache.h"

struct bid_settle;

/* A file in the last stage. bid_settling_new() makes it with its path; the code that holds it owns it. */
struct bid_settling {
	struct bid_settling *next;
	int error;
	struct bid_added added; /* with error 0, unless only prepared */
	struct bid_ingest *ingest; /* owned; NULL unless prepared */
	bool is_fresh; /* known, but perhaps not on disk before the next sync */
	bool keep; /* save in the cache, under key, after a report without error */
	struct bid_scan_key key;
	char path[];
};

struct bid_settling *bid_settling_new(const char *dir_path, const char *name);
void bid_settling_free(struct bid_settling *settling);

struct bid_settle_ops {
	/* Report a finished file. A non-zero return ends the scan. */
	int (*settled)(void *user, const struct bid_settling *settling);
	/* Some time has passed. */
	void (*tick)(void *user);
};

int bid_settle_new(struct bid_store *store, unsigned workers, const struct bid_settle_ops *ops, void *user,
		   struct bid_settle **ret_settle);

/* Take over @settling, from any worker. Blocks while the queue is full. */
void bid_settle_push(struct bid_settle *settle, struct bid_settling *settling);

/* One of the workers will push no more. */
void bid_settle_worker_ends(struct bid_settle *settle);

/*
 * Finish files until all workers have ended. Returns 0 or the first error. After an error it writes no more, drops new files, and
 * calls @failed once, to end the workers soon.
 */
int bid_settle_run(struct bid_settle *settle, void (*failed)(void *user, int error), void *user);

/* @settle may be NULL. */
void bid_settle_free(struct bid_settle *settle);

#endif
