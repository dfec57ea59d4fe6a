/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sections of an ELF file (ELF gABI, "Sections"), read without trust: their headers one by one, through a window, and the table
 * of their names as a whole.
 *
 * Calling sequence: bid_sections_open(); look at the header; bid_sections_check(); perhaps bid_sections_read_names(); then
 * bid_section_at() and bid_section_name() for each index from 1 on. bid_sections_release() in any case.
 */
#ifndef BID_ELF_SECTIONS_H
#define BID_ELF_SECTIONS_H

#include "reader.h"

struct bid_sections {
	int fd; /* borrowed */
	uint64_t file_size;
	struct bid_header header; /* with the true counts */
	uint8_t head[BID_ELF_READER_HEAD];
	struct bid_elf_reader reader; /* reader of the section headers */
	char *names; /* owned; NULL without a table or before it is read */
	size_t names_len; /* up to and with the last NUL */
};

struct bid_section {
	uint64_t name, type, flags, address, offset, size, link, align;
};

/*
 * Read the header of the file open at @fd, which stays the caller's. @sections must not move until it is released. Returns 0,
 * -ENOEXEC for no ELF file, -EBADMSG for a damaged one, or as pread(2).
 */
int bid_sections_open(struct bid_sections *sections, int fd);

/* All of the calling sequence up to bid_section_at(). As bid_sections_open(); -ENOENT if no section has a name that can be read. */
int bid_sections_load(struct bid_sections *sections, int fd);

void bid_sections_release(struct bid_sections *sections);

/*
 * Check the table of section headers. Returns 0, -ENOENT without a table, -EBADMSG for a table outside the file, or -E2BIG above
 * BID_LIMIT_SECTIONS.
 */
int bid_sections_check(const struct bid_sections *sections);

/*
 * Read the table of section names. Returns 0, also if the sections have no names; -EBADMSG for a malformed table; -E2BIG for a
 * compressed table, or one above the limits of bid_elf_reader_table(); or as pread(2), or -ENOMEM.
 */
int bid_sections_read_names(struct bid_sections *sections);

/* Returns 0, -EBADMSG for a section header that is not in the file, or as pread(2). */
int bid_section_at(struct bid_sections *sections, uint64_t index, struct bid_section *ret_section);

/* Return the name of @section, at most as long as the table, or NULL if it has none. */
static inline const char *bid_section_name(const struct bid_sections *sections, const struct bid_section *section)
{
	return section->name < sections->names_len ? sections->names + section->name : NULL;
}

/* Are these bytes in the file? */
static inline bool bid_sections_inside(const struct bid_sections *sections, uint64_t offset, uint64_t size)
{
	return offset <= sections->file_size && size <= sections->file_size - offset;
}

#endif
