// SPDX-License-Identifier: LGPL-2.1-or-later
/* Extraction of sections by name, as debuginfod serves them. */

#include <errno.h>
#include <string.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "sections.h"

/* Open the sections of @fd. Returns -ENOENT if no section has a name. */
static int open_sections(struct bid_sections *sections, int fd)
{
	int r = bid_sections_open(sections, fd);

	if (r == 0)
		r = bid_sections_check(sections);
	if (r == 0)
		r = bid_sections_read_names(sections);
	return r == -EBADMSG || r == -E2BIG || r == -ENODATA ? -ENOENT : r;
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
	int r = open_sections(&sections, fd);

	for (uint64_t i = 1; r == 0 && i < sections.header.shnum; i++) {
		struct bid_section section;
		const char *its;

		r = bid_section_at(&sections, i, &section);
		its = r == 0 ? name_of(&sections, &section) : NULL;
		if (its && strcmp(its, name) == 0) {
			*ret_section = (struct bid_elf_section){ .offset = section.offset, .size = section.size };
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

int bid_elf_each_section(int fd, int (*fn)(void *user, const char *name), void *user)
{
	bid_cleanup(bid_sections_release) struct bid_sections sections;
	int r = open_sections(&sections, fd);

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
