/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the passes of a check share: objects (verify_objects.c), links (verify_links.c), our own folder (verify_own.c), and in it
 * sources and sections (verify_pieces.c); and what one pass leaves for the next (verify_seen.c).
 */
#ifndef BID_DISK_VERIFY_H
#define BID_DISK_VERIFY_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api/verify.h"
#include "disk/digest.h"
#include "disk/entries.h"
#include "disk/idset.h"

struct bid_entries_walk;
struct bid_verify_seen;

/* What is shared out among the threads by the first byte of an id: a directory is one thread's. */
enum bid_verify_part {
	BID_VERIFY_LINKS,
	BID_VERIFY_RECORDS,
	BID_VERIFY_UNPACKED,
	BID_VERIFY_TABLES,
	BID_VERIFY_SOURCES,
	BID_VERIFY_SECTIONS,
	BID_VERIFY_NAMES,
	BID_VERIFY_PARTS
};

enum { BID_VERIFY_FANS = 256 };

/* What the threads of a check share. */
struct bid_verify_shared {
	pthread_mutex_t lock; /* held while a callback runs */
	struct bid_verify_stats told; /* what all threads have counted, as far as they have said; under the lock */
	atomic_int ended; /* what a callback returned that ends the check; 0 while none did */
	struct bid_entries_walk *walk; /* while the names are looked at */
	atomic_int fans[BID_VERIFY_FANS]; /* the directories of links, as far as they were needed; else -1; owned */
	atomic_bool claimed[BID_VERIFY_PARTS][BID_VERIFY_FANS];
	uint64_t seed; /* of the hashes of ids; random */
	bool recorded; /* there may be records, in a folder of ours */
	atomic_bool blind; /* not all names were seen: of none it is known that it is gone */
	struct bid_verify_seen *seen; /* what all threads have seen; owned */
};

struct bid_verify {
	struct bid_store *store;
	const struct bid_verify_config *config;
	struct bid_verify_shared *shared; /* borrowed */
	unsigned worker; /* the number of the thread */
	uint64_t told_ms; /* when the progress was last told */
	struct bid_verify_stats told; /* the part of stats that is in shared->told */
	const struct bid_idset *wanted; /* of config->ids; borrowed */
	struct bid_verify_stats stats;
	struct bid_verify_seen *seen; /* as in shared, of this thread alone; owned */
	char *piece; /* BID_DIGEST_PIECE bytes, what is being read, once there is a need for them; owned */
	bool unlinked; /* names are to be walked again: of an id that lost its link, or has other files than that leads to */
	struct bid_id *orphans; /* ids of names that no link leads to, as they were left; owned */
	size_t n_orphans, orphan_room;
	const struct bid_idset *orphaned; /* of the orphans of all threads, once all names were seen; borrowed */
	bool again; /* the names are walked once more, for that; who is told of already is not told of again */
};

/* What a callback or a part said, @r, ends the check for all threads unless it is 0. Returns it. */
static inline int bid_verify_end(struct bid_verify *verify, int r)
{
	if (r != 0)
		atomic_store(&verify->shared->ended, r);
	return r;
}

/* Is the id filed as @filed to be checked? */
bool bid_verify_wants(const struct bid_verify *verify, const struct bid_id *filed);

/* Count and tell. The return value is the callback's. */
int bid_verify_found(struct bid_verify *verify, const struct bid_finding *finding);

int bid_verify_progress(struct bid_verify *verify);

/* Add what @verify has counted since the last time to what all have. Under the lock, or when the threads are gone. */
void bid_verify_count(struct bid_verify *verify);

/* Is what begins with the byte @first of @part this thread's? It is the first one's that asks. */
bool bid_verify_claim(struct bid_verify *verify, enum bid_verify_part part, uint8_t first);

/* Is @filed, by the links that were seen, one whose link leads to a name that was looked at? */
bool bid_verify_is_linked(const struct bid_verify *verify, const struct bid_id *filed);

/* The link of @filed was seen to lead to a name that was looked at. */
int bid_verify_linked(struct bid_verify *verify, const struct bid_id *filed);

/* What the @n threads have seen, each by itself, becomes what all know. */
int bid_verify_seen_gather(struct bid_verify *members, unsigned n);

/* @seen may be NULL. */
void bid_verify_seen_free(struct bid_verify_seen *seen);

/* The directory with the link of @filed; a negative errno if there is none. Stays open until the check is over. */
int bid_verify_fan(struct bid_verify *verify, const struct bid_id *filed);

/*
 * The object @path, which lies under the id of @request; it is @name in the directory open at @dir. One that is not right is set
 * aside when repairing. Returns 0 and whether it is right; else what the callback said, or -ENOMEM.
 */
int bid_verify_object(struct bid_verify *verify, int dir, const char *name, const char *path, const struct bid_request *request,
		      bool *ret_right);

/* One name and all that lies under it. */
int bid_verify_entry(struct bid_verify *verify, const struct bid_place_of *entry);

/* Only whether a link leads to the name, for those whose link went away. */
int bid_verify_adopt(struct bid_verify *verify, const struct bid_place_of *entry);

/* All of perf's links; to be called by each thread. */
int bid_verify_links(struct bid_verify *verify);

/* What lies in ".bidfs" by id; to be called by each thread. */
int bid_verify_own(struct bid_verify *verify);

/* What else lies in ".bidfs". */
int bid_verify_own_rest(struct bid_verify *verify);

/* The record @path, "xx/NAME", of a piece, and that piece. @request is what the name says: all but the detail. */
int bid_verify_piece_record(struct bid_verify *verify, const char *path, const char *first, const char *name,
			    const struct bid_request *request);

/* The pieces of the id and kind @of that have no record at all. */
int bid_verify_pieces(struct bid_verify *verify, const struct bid_request *of);

/* What is wrong with @record, which has the name of @request and stands for a file of @size bytes; NULL if nothing is. Static. */
const char *bid_verify_record_fault(const json_t *record, const struct bid_request *request, off_t size);

/* Remove the file, or empty directory, @path of our own folder. Returns whether it is gone. */
bool bid_verify_drop(struct bid_verify *verify, const char *path);

/* The digest of the file open at @fd, which is counted. Returns 0, a negative errno, or what a callback returned. */
int bid_verify_digest(struct bid_verify *verify, int fd, char ret_digest[static BID_DIGEST_MAX]);

#endif
