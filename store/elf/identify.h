/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build-ids by the headers of a file. */
#ifndef BID_ELF_IDENTIFY_H
#define BID_ELF_IDENTIFY_H

#include <bid/id.h>

#include "header.h"
#include "note.h"

/* What the notes of a file's segments say. */
struct bid_segment_notes {
	struct bid_note_found found;
	bool sound; /* they are notes to the last byte */
	bool hidden; /* some of them are behind what there is of the file */
};

/*
 * Read the headers through @headers and the notes through @notes, which may be the same, but then a walk along many of both reads
 * everything again and again. Of a relocatable file segments mean nothing. As bid_bytes_at(), and -ENODATA without such a table.
 */
int bid_elf_scan_segments(struct bid_bytes *headers, struct bid_bytes *notes, const struct bid_header *header,
			  struct bid_segment_notes *ret_segments);

/* The first id in the order of the sections; len 0 if none. */
int bid_elf_scan_sections(struct bid_bytes *headers, struct bid_bytes *notes, const struct bid_header *header,
			  struct bid_id *ret_id);

#endif
