/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What sources said they do not have. A "no" is remembered for one source and one request, on disk where the store can be written
 * (docs/FORMAT.md, "Facts"), so that it stands after a restart, and for all programs that use the store. It stands for a
 * minute and a half at first, because some servers say "no" while they unpack; then for 10 minutes, 30 minutes, 2 hours, a day.
 *
 * Any number of threads may use one. All functions may block on disk for a moment.
 */
#ifndef BID_API_ABSENCE_H
#define BID_API_ABSENCE_H

#include "api/store.h"

struct bid_absences;

/* Seconds since the epoch. */
typedef int64_t (*bid_clock_fn)(void *user);

/*
 * Those of @store, which may be NULL for none, timed by @clock (NULL: the real time). The caller frees @ret_absences, before the
 * store. Returns 0 or -ENOMEM.
 */
int bid_absences_new(struct bid_store *store, bid_clock_fn clock, void *user, struct bid_absences **ret_absences);

/* @absences may be NULL. */
void bid_absences_free(struct bid_absences *absences);

/*
 * Remember that @source said "no" to @request now. If that still stands, its time begins anew without growing: asking often must
 * not make a "no" last long. Returns 0; -EROFS without a store that can be written; or why it cannot be written, as on a full disk.
 */
int bid_absences_add(struct bid_absences *absences, const struct bid_request *request, const char *source);

/* For how many seconds does the "no" of @source still stand? 0 if it said none. */
unsigned bid_absences_ttl(struct bid_absences *absences, const struct bid_request *request, const char *source);

/* Forget the "no", and how often it was said. */
void bid_absences_forget(struct bid_absences *absences, const struct bid_request *request, const char *source);

/* How many stand at the moment. */
size_t bid_absences_count(struct bid_absences *absences);

#endif
