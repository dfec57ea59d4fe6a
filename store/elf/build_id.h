/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build-ids among notes (ELF gABI, "Note Section"). */
#ifndef BID_ELF_BUILD_ID_H
#define BID_ELF_BUILD_ID_H

#include <bid/id.h>

#include "reader.h"

/* ids found so far; the caller zeroes it first */
struct bid_note_found {
	struct bid_id id; /* the first one; len 0 if none */
	bool conflict; /* there was another one, with other bytes */
};

/*
 * Scan @size bytes of notes at @offset; @align is the alignment of their segment or section. Ids of 0 or more than BID_ID_MAX bytes
 * do not count. Adds to @found. Returns 0 if the range consists of notes to the last byte, or
 *   -EBADMSG	a note is malformed; the notes before it were added
 *   other	as bid_elf_reader_at(); nothing was added from a range outside the file
 */
int bid_note_scan(struct bid_elf_reader *reader, const struct bid_form *form, uint64_t offset, uint64_t size, uint64_t align,
		  struct bid_note_found *found);

/* Find the build-id of a file. As bid_elf_build_id_in(), and -E2BIG for a file that costs too much. */
int bid_elf_reader_build_id(struct bid_elf_reader *reader, struct bid_id *ret_id);

#endif
