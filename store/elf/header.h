/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The header of an ELF file (ELF gABI, "ELF Header"), read without trust. */
#ifndef BID_ELF_HEADER_H
#define BID_ELF_HEADER_H

#include "reader.h"

struct bid_header {
	struct bid_form form;
	unsigned type, machine;
	uint64_t phoff, phnum, phentsize; /* phnum 0: no usable program headers */
	uint64_t shoff, shnum, shentsize, shstrndx;
	bool odd; /* a table of headers has no offset, or entries of another size: no tool writes such a file */
};

/* The header at the beginning of the file. Returns 0, -ENOEXEC for no ELF file, or as bid_elf_reader_at(). */
int bid_header_read(struct bid_elf_reader *reader, struct bid_header *ret_header);

/*
 * Read the counts above 16 bits from the section header at index 0 (gABI, "ELF Header"). Leaves the counts alone if the file has no
 * section header table around this header. Errors as bid_elf_reader_at().
 */
int bid_header_read_large_counts(struct bid_elf_reader *reader, struct bid_header *header);

/* Is a table of @count headers in the file? As bid_elf_reader_check(), and -ENODATA for no table. */
int bid_header_check_table(struct bid_elf_reader *reader, uint64_t offset, uint64_t count, uint64_t entry_size);

#endif
