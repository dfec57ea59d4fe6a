/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build-ids by the headers of a file. */
#ifndef BID_ELF_IDENTIFY_H
#define BID_ELF_IDENTIFY_H

#include <bid/id.h>

#include "header.h"
#include "note.h"

/* the notes of the segments of a file */
struct bid_segment_notes {
	struct bid_note_found found;
	bool sound; /* the segments are well-formed notes to the last byte */
	bool hidden; /* some notes lie behind the available bytes of the file */
};

/*
 * Scan the segments: headers through @headers, notes through @notes. Both may be the same object, but with many headers and notes
 * each read then evicts the other one's window. Segments of a relocatable file mean nothing. Errors as bid_bytes_at(), and -ENODATA
 * without a program header table.
 */
int bid_elf_scan_segments(struct bid_bytes *headers, struct bid_bytes *notes, const struct bid_header *header,
			  struct bid_segment_notes *ret_segments);

/* The first id in the order of the sections; len 0 if none. */
int bid_elf_scan_sections(struct bid_bytes *headers, struct bid_bytes *notes, const struct bid_header *header,
			  struct bid_id *ret_id);

#endif
