/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who may read what others wrote through a mount for all: who reads what it is a copy of. That is asked by a thread of its own,
 * because to look at a path may be to wait, for another machine or for an answer of this very mount; until then it is its writer's
 * alone.
 */
#ifndef BID_FS_SHARER_H
#define BID_FS_SHARER_H

#include "notify.h"
#include "staged.h"

struct bid_sharer;

/* Starts the thread: only after daemonising. @staging and @notifier are borrowed. */
int bid_sharer_new(struct bid_staging *staging, struct bid_notifier *notifier, struct bid_sharer **ret_sharer);

/*
 * @staged was published. Does not block. Of many at once some stay as they are: 256 wait at most. @sharer may be NULL, of a mount
 * for one user.
 */
void bid_sharer_add(struct bid_sharer *sharer, const struct bid_staged *staged);

/* Nobody is asked about any more, and nobody told: @notifier may go. @sharer may be NULL. */
void bid_sharer_end(struct bid_sharer *sharer);

/* After that, and after the session, whose mount the thread may wait for. @sharer may be NULL. */
void bid_sharer_free(struct bid_sharer *sharer);

#endif
