/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Read an ELF file without trust: bid_elf_reader_at() returns a pointer to a few bytes, or the reason why the file does not have
 * them. The cost of one file is bounded, however its headers point at each other.
 */
#ifndef BID_ELF_READER_H
#define BID_ELF_READER_H

#include <elf.h>
#include <errno.h>
#include <stddef.h>

#include "base/byte_order.h"

/* A fuzz target sets both to the size of the largest header: small files then need many reads. */
#ifndef BID_ELF_READER_HEAD
/* One read of this size has the headers and the notes of most linked files. */
#define BID_ELF_READER_HEAD 4096u
/* One read of this size has a table of 256 section headers; most tables are no larger. */
#define BID_ELF_READER_WINDOW 16384u
#endif

struct bid_elf_reader {
	const uint8_t *head; /* the first bytes of the file, borrowed */
	size_t head_len;
	int fd; /* borrowed; -1 if the head is all there is so far */
	unsigned calls; /* calls left */
	uint64_t budget; /* bytes left to read */
	uint64_t window_offset;
	size_t window_len;
	uint8_t window[BID_ELF_READER_WINDOW];
};

/* Read from memory, and from @fd behind it unless that is -1. */
void bid_elf_reader_init(struct bid_elf_reader *reader, const void *head, size_t head_len, int fd);

/* Read the file open at @fd, its first bytes through @head, which @reader borrows. Returns 0 or as pread(2). */
int bid_elf_reader_open(struct bid_elf_reader *reader, uint8_t head[static BID_ELF_READER_HEAD], int fd);

/* Let @reader cost more by a table of @n entries of @size bytes. The caller has limited @n. */
void bid_elf_reader_allow_table(struct bid_elf_reader *reader, uint64_t n, size_t size);

/*
 * Point *@ret_data at @len bytes at @offset, at most BID_ELF_READER_WINDOW. The pointer is valid until the next call. Returns 0, or
 *   -EAGAIN	the range lies behind the head, and there is no descriptor
 *   -ENODATA	the range lies behind the end of the file
 *   -E2BIG	the file has used up its calls or its budget
 *   other	as pread(2)
 */
int bid_elf_reader_at(struct bid_elf_reader *reader, uint64_t offset, size_t len, const uint8_t **ret_data);

/* Translate an error of these functions for a whole file: one that lacks its headers, or costs too much, is damaged. */
static inline int bid_elf_reader_damage(int r)
{
	return r == -E2BIG || r == -ENODATA ? -EBADMSG : r;
}

/* Does the file have @len bytes at @offset? 0 or as bid_elf_reader_at(). @len is not 0. */
int bid_elf_reader_check(struct bid_elf_reader *reader, uint64_t offset, uint64_t len);

/*
 * Read a table of @size bytes, at most @max, at @offset of the file @fd. A NUL follows the table. The caller frees it. Memory grows
 * with the bytes read. Returns 0, or
 *   -ENODATA	the table lies behind the end of the file
 *   -E2BIG	@size is above @max, or BID_LIMIT_ZEROS bytes in a row are 0, as in a hole: no real table
 *   other	as pread(2), or -ENOMEM
 */
int bid_elf_reader_table(int fd, uint64_t offset, uint64_t size, size_t max, char **ret_table);

/* How the numbers of a file are written (ELF gABI, "Data Representation"). */
struct bid_form {
	bool wide; /* ELFCLASS64 */
	bool big; /* ELFDATA2MSB */
};

static inline uint64_t bid_form_load(const struct bid_form *form, const uint8_t *data, size_t size)
{
	switch (size) {
	case 1:
		return *data;
	case sizeof(uint16_t):
		return bid_load16(form->big, data);
	case sizeof(uint32_t):
		return bid_load32(form->big, data);
	default:
		return bid_load64(form->big, data);
	}
}

#define BID_FORM_LOAD_AS(form, data, struct_type, field) \
	bid_form_load(form, (data) + offsetof(struct_type, field), sizeof(((struct_type *)0)->field))

/* One field of a header at @data: BID_FORM_FIELD(form, data, Phdr, p_type). */
#define BID_FORM_FIELD(form, data, type, field) \
	((form)->wide ? BID_FORM_LOAD_AS(form, data, Elf64_##type, field) : BID_FORM_LOAD_AS(form, data, Elf32_##type, field))

/* The size of a header in the file. */
#define BID_FORM_SIZE(form, type) ((form)->wide ? sizeof(Elf64_##type) : sizeof(Elf32_##type))

/* The header of an ELF file (ELF gABI, "ELF Header"). */
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

/* a program header (ELF gABI, "Program Header") */
struct bid_segment {
	uint64_t type, flags, offset, address, size, memory, align;
};

struct bid_segment bid_segment_parse(const struct bid_form *form, const uint8_t *data);

/* As bid_elf_reader_at(). */
int bid_segment_at(struct bid_elf_reader *reader, const struct bid_header *header, uint64_t index, struct bid_segment *ret_segment);

/* Is a table of @count headers in the file? As bid_elf_reader_check(), and -ENODATA for no table. */
int bid_header_check_table(struct bid_elf_reader *reader, uint64_t offset, uint64_t count, uint64_t entry_size);

#endif
