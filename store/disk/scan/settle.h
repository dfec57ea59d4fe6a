/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The end of a scan's assembly line. Workers hand over what they came to an end with; one thread brings it to disk, many files with
 * one syncfs(2), names what may be named then, and reports. Nothing is reported as added before it is on disk.
 */
#ifndef BID_DISK_SETTLE_H
#define BID_DISK_SETTLE_H

#include "disk/publish/ingest.h"
#include "disk/scan/scan_cache.h"

struct bid_settle;

/* One file. Made with its path by bid_settling_new(), owned by whoever holds it. */
struct bid_settling {
	struct bid_settling *next;
	int error;
	struct bid_added added; /* with error 0, unless it is only prepared */
	struct bid_ingest *ingest; /* owned; NULL unless it is prepared */
	bool is_fresh; /* it is known, and may not be on disk before the next sync */
	bool keep; /* in the cache, under key, once it was reported without error */
	struct bid_scan_key key;
	char path[];
};

struct bid_settling *bid_settling_new(const char *dir_path, const char *name);
void bid_settling_free(struct bid_settling *settling);

struct bid_settle_ops {
	/* A file is settled. A non-zero return ends the scan. */
	int (*settled)(void *user, const struct bid_settling *settling);
	/* Some time has passed. */
	void (*tick)(void *user);
};

int bid_settle_new(struct bid_store *store, unsigned workers, const struct bid_settle_ops *ops, void *user,
		   struct bid_settle **ret_settle);

/* Take over @settling, from any worker. Waits while there is too much to do already. */
void bid_settle_push(struct bid_settle *settle, struct bid_settling *settling);

/* One of the workers will push no more. */
void bid_settle_worker_ends(struct bid_settle *settle);

/*
 * Settle until every worker has ended. Returns 0, or what went wrong first: then no more is written, what comes is dropped, and
 * @failed is called once, so that workers end soon.
 */
int bid_settle_run(struct bid_settle *settle, void (*failed)(void *user, int error), void *user);

/* @settle may be NULL. */
void bid_settle_free(struct bid_settle *settle);

#endif
