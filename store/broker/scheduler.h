/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The race: which sources of a download are asked, and when. The one that delivered last is asked first; if it has not begun to
 * answer after hedge_ms, the next one is asked beside it, and after as long again a third. One that has said nothing for ten times
 * as long leaves its place to another, but may still answer. From the first headers on nobody else is asked, until what they belong
 * to breaks off or turns out to be slow. The first whose bytes carry the right id wins, and the
 * others are told to end; if it dies all the same, they can be asked again: a source is out of the race only by what it said.
 *
 * While all that comes is slow (throughput.h), another one is asked beside it after each hedge_ms. The slow one goes on until the
 * other has more bytes, of the right id, and does not end the other by its own. Of two, the one that has fewer bytes and is no
 * faster, as where our own link is what is slow, ends instead, and is not asked again as long as anything comes.
 */
#ifndef BID_BROKER_SCHEDULER_H
#define BID_BROKER_SCHEDULER_H

#include "broker/attempt.h"

/* Transfers to end, collected under the lock and ended without it. */
struct bid_cancel_list {
	struct {
		struct bid_source *source;
		uint64_t transfer;
	} of[BID_PARALLEL_MOST];
	unsigned n;
};

/* Ask is RUNNING, and is to be ended. Under the lock. */
void bid_cancel_list_add(struct bid_cancel_list *cancels, const struct bid_attempt *attempt);

/* Without the lock. */
void bid_cancel_list_run(const struct bid_cancel_list *cancels);

/* Choose the order of the sources for @download, which none was asked for yet. Without the lock. */
void bid_scheduler_line_up(struct bid_download *download);

/*
 * Ask who is to be asked now; if nobody is, and nobody is being asked, end the download. Without the lock, by someone who has a
 * reference.
 */
void bid_scheduler_step(struct bid_download *download);

/* The time for another one has come, or to look how fast what comes is. Under the lock, which is released meanwhile. */
void bid_scheduler_time_out(struct bid_download *download);

/* The headers of @attempt came. By the source's thread, without the lock. */
void bid_scheduler_begun(struct bid_attempt *attempt);

/*
 * What came of @attempt broke off, and its source tries again by itself: until something comes of that, others are asked beside it.
 * By the source's thread, without the lock.
 */
void bid_scheduler_broke_off(struct bid_attempt *attempt);

/*
 * What comes from @attempt is what is wanted, and with @whole it is all there: end the others. Returns false if that is too early,
 * because one of them has more. By the source's thread or the commit worker, without the lock.
 */
bool bid_scheduler_won(struct bid_attempt *attempt, bool whole);

/* Take all attempts but @but (which may be NULL) out of the race. Under the lock. */
void bid_scheduler_stop(struct bid_download *download, const struct bid_attempt *but, struct bid_cancel_list *cancels);

/* Take those attempts of @download that were not even sent out of the race. Under the lock. */
void bid_scheduler_stop_unsent(struct bid_download *download, struct bid_cancel_list *cancels);

/*
 * @attempt is over, with an outcome (@said) or so that its source may be asked again. Takes it out of the download and frees it.
 * Without the lock, by the commit worker or who could not start it, who needs a reference of his own.
 */
void bid_scheduler_leave(struct bid_attempt *attempt, bool said);

#endif
