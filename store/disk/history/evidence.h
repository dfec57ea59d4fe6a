/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What servers delivered under an id that it does not carry: kept in the quarantine, with what is known of it. */
#ifndef BID_DISK_EVIDENCE_H
#define BID_DISK_EVIDENCE_H

#include "api/store.h"
#include "disk/publish/temp.h"

/*
 * Keep the beginning of @temp, which is @size bytes that came for @request, and @evidence beside it. The oldest evidence makes
 * room. @temp is good for nothing else afterwards.
 */
int bid_evidence_keep(struct bid_store *store, const struct bid_request *request, struct bid_temp *temp, uint64_t size,
		      const struct bid_evidence *evidence);

/*
 * Drop the evidence that is older than @before, and what went to the quarantine before then (disk/quarantine.h), or with @dry_run
 * only count it. Adds to @left and @gone.
 */
int bid_evidence_forget(struct bid_store *store, int64_t before, bool dry_run, unsigned *left, unsigned *gone);

#endif
