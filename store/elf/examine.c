// SPDX-License-Identifier: LGPL-2.1-or-later
/* Examine the structure of an ELF file: sections, segments, DWARF, symbols, links to other debug files. */
#include "api/elf.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "build_id.h"
#include "sections.h"

/* the name of a file and an id */
#define MAX_ALTLINK (4096 + BID_ID_MAX)

/* .gnu_debugaltlink (dwz(1)): the name of the file, NUL, the bytes of its build-id. Anything else names no file. */
static int read_altlink(int fd, const struct bid_section *section, struct bid_id *ret_id)
{
	char data[MAX_ALTLINK];
	const char *end;
	ssize_t n;

	if (section->size > sizeof(data))
		return 0;
	n = bid_pread_full(fd, data, section->size, (off_t)section->offset);
	if (n < 0)
		return (int)n;
	end = memchr(data, '\0', (size_t)n);
	if (end)
		bid_id_from_bytes(end + 1, (size_t)n - (size_t)(end + 1 - data), ret_id);
	return 0;
}

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* The sections of DWARF. */
struct dwarf {
	bool any;
	struct bid_section altlink; /* the first; without bytes if there is none */
};

static int examine_section(const struct bid_sections *sections, const struct bid_section *section, struct bid_elf_info *info,
			   struct dwarf *dwarf)
{
	const char *name;

	/* a debug file may lack them */
	if (section->type == SHT_NULL || section->type == SHT_NOBITS || section->size == 0)
		return 0;
	if (!bid_sections_inside(sections, section->offset, section->size))
		return -EBADMSG;
	info->has_symtab |= section->type == SHT_SYMTAB;
	info->has_code |= (section->flags & SHF_EXECINSTR) != 0;
	name = sections->names ? bid_section_name(sections, section) : "";
	if (!name)
		return -EBADMSG;
	info->has_dwarf |= strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0;
	dwarf->any |= begins_with(name, ".debug_") || begins_with(name, ".zdebug_");
	if (strcmp(name, ".gnu_debugaltlink") == 0 && dwarf->altlink.size == 0)
		dwarf->altlink = *section;
	return 0;
}

static int examine_sections(struct bid_sections *sections, struct bid_elf_info *info)
{
	int r = bid_sections_read_names(sections);
	struct dwarf dwarf = { 0 };

	/* larger than any: the sections are there all the same, and have no names */
	if (r == -E2BIG)
		r = 0;
	for (uint64_t i = 1; r == 0 && i < sections->header.shnum; i++) {
		struct bid_section section;

		r = bid_section_at(sections, i, &section);
		if (r == 0)
			r = examine_section(sections, &section, info, &dwarf);
	}
	/* dwz(1) writes a file with strings only for programs without shared types */
	info->has_dwarf |= dwarf.any && !info->has_code;
	/* strip(1) keeps the link after it removes the sections that use it */
	return r == 0 && info->has_dwarf ? read_altlink(sections->fd, &dwarf.altlink, &info->alt) : r;
}

/* Without sections only the segments describe the contents. With sections the segments may be wrong: see build_id.c. */
static int examine_segments(struct bid_sections *sections, struct bid_elf_info *info)
{
	for (uint64_t i = 0; i < sections->header.phnum; i++) {
		struct bid_segment segment;
		int r = bid_segment_at(&sections->reader, &sections->header, i, &segment);

		if (r < 0)
			return r;
		if (segment.type == PT_NULL || segment.size == 0)
			continue;
		if (!bid_sections_inside(sections, segment.offset, segment.size))
			return -EBADMSG;
		info->has_code |= segment.type == PT_LOAD && segment.flags & PF_X;
	}
	return 0;
}

static int examine_headers(struct bid_sections *sections, struct bid_elf_info *info)
{
	const struct bid_header *header = &sections->header;
	struct bid_elf_reader reader;
	int r = bid_sections_check(sections);

	/* the headers' tables are whole and of known form */
	if (header->odd || r == -EBADMSG ||
	    (header->phnum > 0 && !bid_sections_inside(sections, header->phoff, header->phnum * header->phentsize)))
		return -EBADMSG;
	r = r == 0 ? examine_sections(sections, info) : examine_segments(sections, info);
	/* cut short meanwhile, or more segments than any file has */
	if (r < 0)
		return bid_elf_reader_damage(r);
	/* from the first bytes, which are here already */
	bid_elf_reader_init(&reader, sections->reader.head, sections->reader.head_len, sections->fd);
	r = bid_elf_reader_build_id(&reader, &info->id);
	return r == -ENODATA || r == -E2BIG ? 0 : r;
}

int bid_elf_examine(int fd, struct bid_elf_info *ret_info)
{
	bid_cleanup(bid_sections_release) struct bid_sections sections;
	struct bid_elf_info info = { 0 };
	int r = bid_sections_open(&sections, fd);

	if (r == 0)
		r = examine_headers(&sections, &info);
	if (r == 0)
		*ret_info = info;
	return r;
}
