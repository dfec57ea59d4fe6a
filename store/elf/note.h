/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build-ids among notes (ELF gABI, "Note Section"). */
#ifndef BID_ELF_NOTE_H
#define BID_ELF_NOTE_H

#include <bid/id.h>

#include "bytes.h"

/* What was found so far; zeroed at first. */
struct bid_note_found {
	struct bid_id id; /* the first one; len 0 if none */
	bool conflict; /* there was another one, with other bytes */
};

/*
 * Look at the @size bytes of notes at @offset, whose segment or section says @align. Ids of no bytes or of more than BID_ID_MAX are
 * none. Adds to @found. Returns 0 if they are notes to the last byte, or
 *   -EBADMSG	they are not; what came before the first bad one was added
 *   other	as bid_bytes_at(): nothing of a range that does not lie in the file is added
 */
int bid_note_scan(struct bid_bytes *bytes, const struct bid_form *form, uint64_t offset, uint64_t size, uint64_t align,
		  struct bid_note_found *found);

#endif
