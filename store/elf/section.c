// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sections by their names, as debuginfod hands them out. */
#include <bid/elf.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "examine.h"
#include "names.h"

struct sections {
	Elf *elf;
	struct bid_elf_names names;
	uint64_t file_size;
};

static int open_sections(int fd, struct sections *ret_sections)
{
	struct stat st;
	GElf_Ehdr ehdr;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	ret_sections->file_size = (uint64_t)st.st_size;
	r = bid_elf_open(fd, &ret_sections->elf, &ehdr);
	/* an offset of 0 is no table, whatever its count says */
	if (r == 0)
		r = ehdr.e_shoff == 0 ? -ENOENT : bid_elf_names_find(ret_sections->elf, &ret_sections->names);
	return r == -EBADMSG ? -ENOENT : r;
}

static void close_sections(struct sections *sections)
{
	bid_elf_cleanup(&sections->elf);
}

/* The name of @scn if it has its bytes in the file, and one that can be a file's; else NULL. */
static const char *name_of(const struct sections *sections, Elf_Scn *scn, struct bid_elf_section *ret_section)
{
	const char *name;
	GElf_Shdr shdr;

	if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NULL || shdr.sh_type == SHT_NOBITS ||
	    shdr.sh_offset > sections->file_size || shdr.sh_size > sections->file_size - shdr.sh_offset)
		return NULL;
	*ret_section = (struct bid_elf_section){ .offset = shdr.sh_offset, .size = shdr.sh_size };
	name = bid_elf_name_at(&sections->names, shdr.sh_name);
	return name && strnlen(name, NAME_MAX + 1) <= NAME_MAX ? name : NULL;
}

int bid_elf_find_section(int fd, const char *name, struct bid_elf_section *ret_section)
{
	bid_cleanup(close_sections) struct sections sections = { 0 };
	int r = open_sections(fd, &sections);

	if (r < 0)
		return r;
	for (Elf_Scn *scn = elf_nextscn(sections.elf, NULL); scn; scn = elf_nextscn(sections.elf, scn)) {
		struct bid_elf_section section;
		const char *its = name_of(&sections, scn, &section);

		if (its && strcmp(its, name) == 0) {
			*ret_section = section;
			return 0;
		}
	}
	return -ENOENT;
}

int bid_elf_each_section(int fd, int (*fn)(void *user, const char *name), void *user)
{
	bid_cleanup(close_sections) struct sections sections = { 0 };
	int r = open_sections(fd, &sections);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (Elf_Scn *scn = elf_nextscn(sections.elf, NULL); scn && r == 0; scn = elf_nextscn(sections.elf, scn)) {
		struct bid_elf_section section;
		const char *name = name_of(&sections, scn, &section);

		if (name)
			r = fn(user, name);
	}
	return r;
}
