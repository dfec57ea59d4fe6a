// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"

/* Steps: a few for each of as many headers, or for its notes. */
#define MAX_CALLS (4 * BID_LIMIT_SECTIONS)

void bid_elf_reader_init(struct bid_elf_reader *reader, const void *head, size_t head_len, int fd)
{
	/* by field: the window is not worth clearing */
	reader->head = head;
	reader->head_len = head_len;
	reader->fd = fd;
	reader->calls = MAX_CALLS;
	reader->budget = BID_LIMIT_HEADERS;
	reader->window_offset = 0;
	reader->window_len = 0;
}

void bid_elf_reader_allow_table(struct bid_elf_reader *reader, uint64_t n, size_t size)
{
	reader->calls += (unsigned)n;
	reader->budget += n * size;
}

int bid_elf_reader_open(struct bid_elf_reader *reader, uint8_t head[static BID_ELF_READER_HEAD], int fd)
{
	ssize_t n = bid_pread_least(fd, head, sizeof(Elf64_Ehdr), BID_ELF_READER_HEAD, 0);

	if (n < 0)
		return (int)n;
	bid_elf_reader_init(reader, head, (size_t)n, fd);
	return 0;
}

static int move_window(struct bid_elf_reader *reader, uint64_t offset, size_t len)
{
	uint64_t end = reader->window_offset + reader->window_len;
	size_t room = len > BID_ELF_READER_HEAD ? len : BID_ELF_READER_HEAD;
	ssize_t n;

	/* a table is read in order: fill the whole window */
	if (offset >= reader->window_offset && offset <= end)
		room = sizeof(reader->window);
	if (room > reader->budget)
		return -E2BIG;
	reader->budget -= room;
	reader->window_len = 0;
	n = bid_pread_least(reader->fd, reader->window, len, room, (off_t)offset);
	if (n < 0)
		return (int)n;
	reader->window_len = (size_t)n;
	reader->window_offset = offset;
	return reader->window_len < len ? -ENODATA : 0;
}

int bid_elf_reader_at(struct bid_elf_reader *reader, uint64_t offset, size_t len, const uint8_t **ret_data)
{
	int r;

	if (reader->calls == 0)
		return -E2BIG;
	reader->calls--;

	/* no file is longer than off_t can say */
	if (offset > (uint64_t)INT64_MAX - BID_ELF_READER_WINDOW)
		return -ENODATA;
	if (offset + len <= reader->head_len) {
		*ret_data = reader->head + offset;
		return 0;
	}
	if (reader->fd < 0)
		return -EAGAIN;

	if (offset < reader->window_offset || offset + len > reader->window_offset + reader->window_len) {
		r = move_window(reader, offset, len);
		if (r < 0)
			return r;
	}
	*ret_data = reader->window + (offset - reader->window_offset);
	return 0;
}

int bid_elf_reader_check(struct bid_elf_reader *reader, uint64_t offset, uint64_t len)
{
	const uint8_t *data;
	uint64_t last;

	/* read a range that fits as a whole: the caller reads it next */
	if (len <= BID_ELF_READER_WINDOW)
		return bid_elf_reader_at(reader, offset, (size_t)len, &data);
	if (__builtin_add_overflow(offset, len - 1, &last))
		return -ENODATA;
	return bid_elf_reader_at(reader, last, 1, &data);
}

static bool is_zeros(const char *data, size_t len)
{
	return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

int bid_elf_reader_table(int fd, uint64_t offset, uint64_t size, size_t max, char **ret_table)
{
	bid_auto_free char *table = NULL;
	size_t done = 0, room = 0;

	if (size > max)
		return -E2BIG;
	if (offset > (uint64_t)INT64_MAX - max)
		return -ENODATA;
	do {
		size_t piece = size - done < BID_LIMIT_ZEROS ? (size_t)size - done : BID_LIMIT_ZEROS;
		char *larger = table;
		ssize_t n;

		if (done + piece + 1 > room) {
			room = 2 * (done + piece) < size ? 2 * (done + piece) + 1 : (size_t)size + 1;
			larger = realloc(table, room);
		}
		if (!larger)
			return -ENOMEM;
		table = larger;
		n = bid_pread_full(fd, table + done, piece, (off_t)(offset + done));
		if (n < 0)
			return (int)n;
		if ((size_t)n < piece)
			return -ENODATA;
		if (piece == BID_LIMIT_ZEROS && is_zeros(table + done, piece))
			return -E2BIG;
		done += piece;
	} while (done < size);
	table[size] = '\0';
	*ret_table = bid_steal(table);
	return 0;
}

/* -ENOEXEC, or as bid_elf_reader_at() */
static int read_ident(struct bid_elf_reader *reader, struct bid_form *ret_form)
{
	const uint8_t *ident;
	int r;

	/* fewer than 16 bytes suffice to reject a file with another magic */
	if (memcmp(reader->head, ELFMAG, reader->head_len < SELFMAG ? reader->head_len : SELFMAG) != 0)
		return -ENOEXEC;
	r = bid_elf_reader_at(reader, 0, EI_NIDENT, &ident);
	if (r < 0)
		return r == -ENODATA ? -ENOEXEC : r;
	if (memcmp(ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	if (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	if (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB)
		return -ENOEXEC;
	if (ident[EI_VERSION] != EV_CURRENT)
		return -ENOEXEC;
	*ret_form = (struct bid_form){ .wide = ident[EI_CLASS] == ELFCLASS64, .big = ident[EI_DATA] == ELFDATA2MSB };
	return 0;
}

int bid_header_check_table(struct bid_elf_reader *reader, uint64_t offset, uint64_t count, uint64_t entry_size)
{
	uint64_t size;

	if (count == 0 || __builtin_mul_overflow(count, entry_size, &size))
		return -ENODATA;
	return bid_elf_reader_check(reader, offset, size);
}

int bid_header_read_large_counts(struct bid_elf_reader *reader, struct bid_header *header)
{
	const struct bid_form *form = &header->form;
	uint64_t phnum, shnum = header->shnum;
	const uint8_t *data;
	int r;

	r = bid_elf_reader_at(reader, header->shoff, header->shentsize, &data);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	phnum = BID_FORM_FIELD(form, data, Shdr, sh_info);
	if (shnum == 0)
		shnum = BID_FORM_FIELD(form, data, Shdr, sh_size);
	r = bid_header_check_table(reader, header->shoff, shnum, header->shentsize);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	if (header->phnum == PN_XNUM && phnum != 0)
		header->phnum = phnum;
	header->shnum = shnum;
	return 0;
}

int bid_header_read(struct bid_elf_reader *reader, struct bid_header *ret_header)
{
	struct bid_header header = { 0 };
	const struct bid_form *form = &header.form;
	const uint8_t *data;
	int r;

	r = read_ident(reader, &header.form);
	if (r < 0)
		return r;
	r = bid_elf_reader_at(reader, 0, BID_FORM_SIZE(form, Ehdr), &data);
	if (r < 0)
		return r == -ENODATA ? -ENOEXEC : r;
	header.type = (unsigned)BID_FORM_FIELD(form, data, Ehdr, e_type);
	header.machine = (unsigned)BID_FORM_FIELD(form, data, Ehdr, e_machine);
	header.phoff = BID_FORM_FIELD(form, data, Ehdr, e_phoff);
	header.phnum = BID_FORM_FIELD(form, data, Ehdr, e_phnum);
	header.phentsize = BID_FORM_SIZE(form, Phdr);
	header.shoff = BID_FORM_FIELD(form, data, Ehdr, e_shoff);
	header.shnum = BID_FORM_FIELD(form, data, Ehdr, e_shnum);
	header.shentsize = BID_FORM_SIZE(form, Shdr);
	header.shstrndx = BID_FORM_FIELD(form, data, Ehdr, e_shstrndx);
	header.odd = (header.phnum > 0 &&
		      (header.phoff == 0 || BID_FORM_FIELD(form, data, Ehdr, e_phentsize) != header.phentsize)) ||
		     (header.shoff != 0 && BID_FORM_FIELD(form, data, Ehdr, e_shentsize) != header.shentsize);

	if (header.phoff == 0)
		header.phnum = 0;
	if (header.shoff == 0)
		header.shnum = 0;
	if (header.shoff != 0 && header.phnum == PN_XNUM) {
		r = bid_header_read_large_counts(reader, &header);
		if (r < 0)
			return r;
	}
	*ret_header = header;
	return 0;
}

struct bid_segment bid_segment_parse(const struct bid_form *form, const uint8_t *data)
{
	return (struct bid_segment){
		.type = BID_FORM_FIELD(form, data, Phdr, p_type),
		.flags = BID_FORM_FIELD(form, data, Phdr, p_flags),
		.offset = BID_FORM_FIELD(form, data, Phdr, p_offset),
		.address = BID_FORM_FIELD(form, data, Phdr, p_vaddr),
		.size = BID_FORM_FIELD(form, data, Phdr, p_filesz),
		.memory = BID_FORM_FIELD(form, data, Phdr, p_memsz),
		.align = BID_FORM_FIELD(form, data, Phdr, p_align),
	};
}

int bid_segment_at(struct bid_elf_reader *reader, const struct bid_header *header, uint64_t index, struct bid_segment *ret_segment)
{
	const uint8_t *data;
	int r = bid_elf_reader_at(reader, header->phoff + index * header->phentsize, header->phentsize, &data);

	if (r == 0)
		*ret_segment = bid_segment_parse(&header->form, data);
	return r;
}
