/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared parts (verify_common.c) of the passes of a check: names with their objects and links (verify_objects.c), and the private
 * folder (verify_private.c).
 */
#ifndef BID_DISK_VERIFY_H
#define BID_DISK_VERIFY_H

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api/verify.h"
#include "disk/digest.h"
#include "disk/idset.h"
#include "disk/objdir_walk.h"

struct bid_dirwalk;

enum { BID_VERIFY_FANOUT = 256 };

/* shared state of the threads of a check */
struct bid_verify_common {
	pthread_mutex_t lock; /* held while a callback runs */
	struct bid_verify_stats reported; /* sum of the counts that the threads have added; under the lock */
	atomic_int ended; /* result of a callback that ended the check; 0 while it runs */
	unsigned workers; /* the number of threads */
	struct bid_dirwalk *walk; /* while checking the names */
	atomic_int fanouts[BID_VERIFY_FANOUT]; /* owned; open directories of links, -1 before the first use */
	bool recorded; /* there may be records, in a folder of ours */
	atomic_bool blind; /* some names cannot be read, or have no link: no file counts as gone */
	/* number of checked names that a link leads to, by the first byte of their ids; 0 in a repair, which changes links */
	atomic_uint linked[BID_VERIFY_FANOUT];
};

struct bid_verify {
	struct bid_store *store;
	const struct bid_verify_config *config;
	struct bid_verify_common *shared; /* borrowed */
	unsigned worker; /* the number of the thread */
	uint64_t progress_ms; /* time of the last progress report */
	struct bid_verify_stats reported; /* part of stats already in shared->reported */
	const struct bid_idset *wanted; /* borrowed; the ids of config->ids */
	struct bid_verify_stats stats;
	char *buffer; /* owned; BID_DIGEST_BUFFER bytes for reading, NULL before the first use */
	bool unlinked; /* the names need a second pass: an id lost its link, or has files that its link's target lacks */
	bool again; /* second pass through the names; it repeats no finding */
};

/* End the check for all threads with @r, unless 0. Returns @r. */
static inline int bid_verify_end(struct bid_verify *verify, int r)
{
	if (r != 0)
		atomic_store(&verify->shared->ended, r);
	return r;
}

/* Does the check cover the on-disk id @disk_id? */
bool bid_verify_wants(const struct bid_verify *verify, const struct bid_id *disk_id);

/* Count and report @finding. Returns the result of the callback. */
int bid_verify_found(struct bid_verify *verify, const struct bid_finding *finding);

int bid_verify_progress(struct bid_verify *verify);

/* Add the counts of @verify since the last call to the shared counts. Under the lock, or after the end of the threads. */
void bid_verify_count(struct bid_verify *verify);

/* a folder with subfolders "xx" by the first byte of an id */
struct bid_verify_folder {
	const char *base; /* its path */
	/* Visit @path, BASE/xx/NAME, of @id. */
	int (*visit)(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path, const struct bid_id *id);
	enum bid_kind kind; /* kind of its files, if they have one */
	int sources; /* kinds of the files that its files are derived from, as a mask of 1 << enum bid_kind */
	bool has_suffix; /* the names are no mere ids, and @id is NULL */
	/* Is the subfolder @first, open at @dir, checked already? May be NULL. */
	bool (*is_checked)(struct bid_verify *verify, const char *first, DIR *dir);
};

/* Visit the entries of the subfolders of this thread; each thread calls it, and so each subfolder belongs to one thread. */
int bid_verify_fanouts(struct bid_verify *verify, const struct bid_verify_folder *folder);

/* Return the directory with the link of @disk_id, or a negative errno without one. It stays open until the end of the check. */
int bid_verify_fanout(struct bid_verify *verify, const struct bid_id *disk_id);

/* Check a name and all files below it. @user, here and below, is a struct bid_verify. */
int bid_verify_entry(void *user, const struct bid_objdir *entry);

/* Check only whether a link leads to the name, after the removal of links. */
int bid_verify_adopt(void *user, const struct bid_objdir *entry);

/* Check all of perf's links; each thread calls it. */
int bid_verify_links(struct bid_verify *verify);

/* Check the entries of ".bidfs" by id; each thread calls it. */
int bid_verify_private(struct bid_verify *verify);

/* Check the other entries of ".bidfs". */
int bid_verify_private_rest(struct bid_verify *verify);

/* Remove the file, or empty directory, @path of the private folder. Returns whether it is gone. */
bool bid_verify_remove(struct bid_verify *verify, const char *path);

/* Compute and count the digest of the file at @fd. Returns 0, a negative errno, or the result of a callback. */
int bid_verify_digest(struct bid_verify *verify, int fd, char ret_digest[static BID_DIGEST_MAX]);

#endif
