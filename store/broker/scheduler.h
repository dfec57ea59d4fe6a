/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The scheduler feeds events to the machine of a download (machine.h), and runs its actions. The first candidate is the source of
 * the last delivery.
 *
 * bid_scheduler_start()	first event
 * bid_scheduler_note()	event of an attempt that ends nothing
 * bid_scheduler_step()	event that may end the download
 * bid_scheduler_done()	the source is done
 * bid_scheduler_leave()	the commit worker is done
 * bid_download_end()	the result
 */
#ifndef BID_BROKER_SCHEDULER_H
#define BID_BROKER_SCHEDULER_H

#include "broker/attempt.h"
#include "broker/download.h"

/*
 * Feed @event of @candidate, or BID_NO_CANDIDATE, to @download; start and cancel attempts. Events that may end the download are for
 * bid_scheduler_step(). Under the lock.
 */
struct bid_actions bid_scheduler_take(struct bid_download *download, enum bid_machine_event event, size_t candidate);

/* The same, with the end of @download. By the owner of a reference, without the lock. */
void bid_scheduler_step(struct bid_download *download, enum bid_machine_event event, size_t candidate);

/* Feed an @event of @attempt that does not end the download. Returns its new state. By the source, without the lock. */
enum bid_attempt_state bid_scheduler_note(struct bid_attempt *attempt, enum bid_machine_event event);

/*
 * End @attempt as REPORTED, or as LEFT if its source may get another one. Frees it, and steps. By the commit worker with its own
 * reference, without the lock.
 */
void bid_scheduler_leave(struct bid_attempt *attempt, enum bid_machine_event event);

/* Queue @attempt for a commit worker, unless one has it. Under the lock. */
void bid_scheduler_done(struct bid_attempt *attempt);

/* Under the lock. */
enum bid_attempt_state bid_scheduler_state(const struct bid_attempt *attempt);

/*
 * Start the attempts of @download, with @look after a look into the store. Takes the reference. Without the lock, and without
 * another process to wait for.
 */
void bid_scheduler_start(struct bid_download *download, bool look);

/*
 * Answer all waiters with @error or a copy of @file, and cancel the attempts. By the commit worker of an attempt that has not left,
 * before the first attempt, or by the thread that set it to ENDING; without the lock.
 */
void bid_download_end(struct bid_download *download, int error, struct bid_file *file);

/*
 * Answer all waiters of @download with @error, and feed it @event. Locking: under the broker's lock, which is released for the
 * answers.
 */
void bid_scheduler_dismiss(struct bid_download *download, enum bid_machine_event event, int error);

/* Cancel @download, without waiters, if possible. Under the lock. */
void bid_download_cancel(struct bid_download *download);

#endif
