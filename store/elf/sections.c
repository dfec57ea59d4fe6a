// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/limits.h"

int bid_sections_open(struct bid_sections *sections, int fd)
{
	struct bid_header *header = &sections->header;
	struct stat st;
	int r;

	sections->fd = fd;
	sections->names = NULL;
	sections->names_len = 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	sections->file_size = (uint64_t)st.st_size;
	r = bid_elf_reader_open(&sections->reader, sections->head, fd);
	if (r == 0)
		r = bid_header_read(&sections->reader, header);
	if (r == 0 && header->shoff != 0 && header->shnum == 0)
		r = bid_header_read_large_counts(&sections->reader, header);
	return bid_elf_reader_damage(r);
}

void bid_sections_release(struct bid_sections *sections)
{
	free(sections->names);
}

int bid_sections_check(const struct bid_sections *sections)
{
	const struct bid_header *header = &sections->header;

	/* an offset of 0 means no table, whatever the count */
	if (header->shoff == 0)
		return -ENOENT;
	if (header->shnum == 0 || header->shoff > sections->file_size ||
	    header->shnum > (sections->file_size - header->shoff) / header->shentsize)
		return -EBADMSG;
	return header->shnum > BID_LIMIT_SECTIONS ? -E2BIG : 0;
}

int bid_section_at(struct bid_sections *sections, uint64_t index, struct bid_section *ret_section)
{
	const struct bid_header *header = &sections->header;
	const struct bid_form *form = &header->form;
	const uint8_t *data;
	int r = bid_elf_reader_at(&sections->reader, header->shoff + index * header->shentsize, header->shentsize, &data);

	if (r < 0)
		return bid_elf_reader_damage(r);
	*ret_section = (struct bid_section){
		.name = BID_FORM_FIELD(form, data, Shdr, sh_name),
		.type = BID_FORM_FIELD(form, data, Shdr, sh_type),
		.flags = BID_FORM_FIELD(form, data, Shdr, sh_flags),
		.address = BID_FORM_FIELD(form, data, Shdr, sh_addr),
		.offset = BID_FORM_FIELD(form, data, Shdr, sh_offset),
		.size = BID_FORM_FIELD(form, data, Shdr, sh_size),
		.link = BID_FORM_FIELD(form, data, Shdr, sh_link),
		.align = BID_FORM_FIELD(form, data, Shdr, sh_addralign),
	};
	return 0;
}

int bid_sections_read_names(struct bid_sections *sections)
{
	const struct bid_header *header = &sections->header;
	bid_auto_free char *table = NULL;
	uint64_t index = header->shstrndx;
	struct bid_section names;
	const char *last;
	int r = 0;

	if (index == SHN_XINDEX) {
		r = bid_section_at(sections, 0, &names);
		index = names.link;
	}
	if (r == 0 && index == SHN_UNDEF)
		return 0;
	if (r == 0)
		r = index < header->shnum ? bid_section_at(sections, index, &names) : -EBADMSG;
	if (r == 0 && (names.type != SHT_STRTAB || names.size == 0))
		r = -EBADMSG;
	if (r == 0 && names.flags & SHF_COMPRESSED)
		r = -E2BIG;
	if (r == 0)
		r = bid_elf_reader_table(sections->fd, names.offset, names.size, BID_LIMIT_NAMES, &table);
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	last = memrchr(table, '\0', names.size);
	sections->names_len = last ? (size_t)(last + 1 - table) : 0;
	sections->names = bid_steal(table);
	return 0;
}

/* Sections by name, as debuginfod serves them. */

int bid_sections_load(struct bid_sections *sections, int fd)
{
	int r = bid_sections_open(sections, fd);

	if (r == 0)
		r = bid_sections_check(sections);
	if (r == 0)
		r = bid_sections_read_names(sections);
	return r == -EBADMSG || r == -E2BIG ? -ENOENT : r;
}

/* Return the name of @section if its bytes are in the file and the name is a valid file name; else NULL. */
static const char *name_of(const struct bid_sections *sections, const struct bid_section *section)
{
	const char *name;

	if (section->type == SHT_NULL || section->type == SHT_NOBITS ||
	    !bid_sections_inside(sections, section->offset, section->size))
		return NULL;
	name = bid_section_name(sections, section);
	return name && strnlen(name, NAME_MAX + 1) <= NAME_MAX ? name : NULL;
}

int bid_elf_find_section(int fd, const char *name, struct bid_elf_section *ret_section)
{
	bid_cleanup(bid_sections_release) struct bid_sections sections;
	int r = bid_sections_load(&sections, fd);

	for (uint64_t i = 1; r == 0 && i < sections.header.shnum; i++) {
		struct bid_section section;
		const char *its;

		r = bid_section_at(&sections, i, &section);
		its = r == 0 ? name_of(&sections, &section) : NULL;
		if (its && strcmp(its, name) == 0) {
			*ret_section = (struct bid_elf_section){
				.offset = section.offset,
				.size = section.size,
				.compressed = section.flags & SHF_COMPRESSED,
				.big = sections.header.form.big,
			};
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

int bid_elf_each_section(int fd, int (*fn)(void *user, const char *name), void *user)
{
	bid_cleanup(bid_sections_release) struct bid_sections sections;
	int r = bid_sections_load(&sections, fd);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (uint64_t i = 1; r == 0 && i < sections.header.shnum; i++) {
		struct bid_section section;
		const char *name;

		r = bid_section_at(&sections, i, &section);
		name = r == 0 ? name_of(&sections, &section) : NULL;
		if (name)
			r = fn(user, name);
	}
	return r;
}
