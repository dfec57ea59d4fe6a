// SPDX-License-Identifier: LGPL-2.1-or-later
#include "header.h"

#include <errno.h>

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
