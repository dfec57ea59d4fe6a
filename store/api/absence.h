/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The negative cache: artifacts that a source does not have. An entry belongs to one source and one request. Entries of a writable
 * store lie on disk (docs/FORMAT.md, "Facts"), survive a restart, and serve all programs with the store. The first negative TTL is
 * a minute and a half, because some servers respond "absent" while they unpack. Later TTLs are 10 minutes, 30 minutes, 2 hours and
 * a day. Multithreading: any number of threads. All functions may block on disk for a moment.
 */
#ifndef BID_API_ABSENCE_H
#define BID_API_ABSENCE_H

#include "api/store.h"

struct bid_absences;

/* Seconds since the epoch. */
typedef int64_t (*bid_clock_fn)(void *user);

/*
 * Open the negative cache of @store (NULL: without a store) with the time of @clock (NULL: the real time). The caller frees
 * @ret_absences before the store. Returns 0 or -ENOMEM.
 */
int bid_absences_new(struct bid_store *store, bid_clock_fn clock, void *user, struct bid_absences **ret_absences);

/* @absences may be NULL. */
void bid_absences_free(struct bid_absences *absences);

/*
 * Add a negative entry of @source for @request, as of now. A still valid entry begins its TTL anew without a longer one: frequent
 * requests must not prolong it. Returns 0; -EROFS without a writable store; or the error of the write, for example on a full disk.
 */
int bid_absences_add(struct bid_absences *absences, const struct bid_request *request, const char *source);

/* Return the seconds left of the negative TTL of @source; 0 without an entry. */
unsigned bid_absences_ttl(struct bid_absences *absences, const struct bid_request *request, const char *source);

/* Remove the negative entry, and reset its TTL to the first one. */
void bid_absences_forget(struct bid_absences *absences, const struct bid_request *request, const char *source);

/*
 * Call @fn for each entry of @store, valid or not, with the time of the response in seconds since the epoch. @request has no
 * detail. Returns 0 or a negative errno.
 */
typedef void (*bid_absence_fn)(void *user, const struct bid_request *request, int64_t time);
int bid_absences_each(struct bid_store *store, bid_absence_fn fn, void *user);

/* How many stand at the moment. */
size_t bid_absences_count(struct bid_absences *absences);

#endif
