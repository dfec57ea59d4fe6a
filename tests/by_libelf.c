// SPDX-License-Identifier: LGPL-2.1-or-later
#include "by_libelf.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "elf/build_id.h"

#define MAX_ALTLINK (4096 + BID_ID_MAX)

/* The names of the sections. */
struct name_table {
	const char *text; /* libelf's; NULL if there is no table */
	size_t len; /* up to and with the last NUL */
};

static void end(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

static bool is_inside(uint64_t file_size, uint64_t offset, uint64_t size)
{
	return offset <= file_size && size <= file_size - offset;
}

static int begin(int fd, Elf **ret_elf, GElf_Ehdr *ret_ehdr)
{
	bid_cleanup(end) Elf *elf = NULL;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, ret_ehdr))
		return -ENOEXEC;
	*ret_elf = bid_steal(elf);
	return 0;
}

static int find_names(Elf *elf, struct name_table *ret_names)
{
	struct name_table names = { 0 };
	Elf_Data *data = NULL;
	const char *last;
	GElf_Shdr shdr;
	size_t index;
	Elf_Scn *scn;

	if (elf_getshdrstrndx(elf, &index) < 0)
		return -EBADMSG;
	if (index == SHN_UNDEF) {
		*ret_names = names;
		return 0;
	}
	scn = elf_getscn(elf, index);
	if (scn && gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_STRTAB && shdr.sh_size > 0) {
		/* the product does not read compressed names */
		if (shdr.sh_flags & SHF_COMPRESSED) {
			*ret_names = names;
			return 0;
		}
		data = elf_rawdata(scn, NULL);
	}
	if (!data || !data->d_buf)
		return -EBADMSG;
	names.text = data->d_buf;
	last = memrchr(names.text, '\0', data->d_size);
	if (last)
		names.len = (size_t)(last + 1 - names.text);
	*ret_names = names;
	return 0;
}

/*
 * Scan @size bytes of notes at @offset. Returns 1 if all bytes are notes, 0 if not, or as pread(2). gelf_getnote(3) misses an id of
 * odd length at the end, where linkers leave out the padding. elf_getdata_rawchunk(3) searches all earlier chunks.
 */
static int scan_range(int fd, const struct bid_form *form, uint64_t offset, uint64_t size, uint64_t align,
		      struct bid_note_found *found)
{
	struct bid_elf_reader reader;
	int r;

	if (size == 0)
		return 1;
	bid_elf_reader_init(&reader, NULL, 0, fd);
	r = bid_note_scan(&reader, form, offset, size, align, found);
	return r == -EBADMSG || r == -ENODATA || r == -E2BIG ? 0 : r < 0 ? r : 1;
}

static int scan_sections(int fd, Elf *elf, const struct bid_form *form, struct bid_note_found *found)
{
	int r;

	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn && found->id.len == 0; scn = elf_nextscn(elf, scn)) {
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_NOTE)
			continue;
		r = scan_range(fd, form, shdr.sh_offset, shdr.sh_size, shdr.sh_addralign, found);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Returns 1 if all segments of notes are such to the last byte, 0 if not, or as scan_range(). */
static int scan_segments(int fd, Elf *elf, const struct bid_form *form, struct bid_note_found *found)
{
	bool sound = true;
	size_t count;
	int r;

	if (elf_getphdrnum(elf, &count) < 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr))
			return 0;
		if (phdr.p_type != PT_NOTE)
			continue;
		r = scan_range(fd, form, phdr.p_offset, phdr.p_filesz, phdr.p_align, found);
		if (r < 0)
			return r;
		sound = sound && r > 0;
	}
	return sound;
}

/* By sections, else by trusted segments: see build_id.c. @ret_id has len 0 if there is none. */
static int find_id(int fd, Elf *elf, const GElf_Ehdr *ehdr, struct bid_id *ret_id)
{
	struct bid_form form = { .wide = ehdr->e_ident[EI_CLASS] == ELFCLASS64, .big = ehdr->e_ident[EI_DATA] == ELFDATA2MSB };
	struct bid_note_found by_section = { 0 }, by_segment = { 0 };
	struct bid_id id;
	int r;

	/* an offset of 0 is no table, despite its count; libelf would read the file header as one */
	if (ehdr->e_type != ET_CORE && ehdr->e_shoff != 0) {
		r = scan_sections(fd, elf, &form, &by_section);
		if (r < 0)
			return r;
	}
	id = by_section.id;
	if (id.len == 0 && ehdr->e_type != ET_CORE && ehdr->e_type != ET_REL && ehdr->e_phoff != 0) {
		r = scan_segments(fd, elf, &form, &by_segment);
		if (r < 0)
			return r;
		if (r > 0 || ehdr->e_shoff == 0)
			id = by_segment.id;
	}
	*ret_id = id;
	return 0;
}

int by_libelf_identify(int fd, struct bid_id *ret_id)
{
	bid_cleanup(end) Elf *elf = NULL;
	struct bid_id id;
	GElf_Ehdr ehdr;
	int r;

	r = begin(fd, &elf, &ehdr);
	if (r < 0)
		return r == -EBADMSG ? -ENODATA : r;
	r = find_id(fd, elf, &ehdr, &id);
	if (r < 0)
		return r;
	if (id.len == 0)
		return -ENODATA;
	*ret_id = id;
	return 0;
}

/* The number in the file: elf_getphdrnum(3) counts only those that fit. */
static uint64_t count_segments(Elf *elf, const GElf_Ehdr *ehdr, size_t sections)
{
	Elf_Scn *first = ehdr->e_phnum == PN_XNUM && sections > 0 ? elf_getscn(elf, 0) : NULL;
	GElf_Shdr shdr;

	return first && gelf_getshdr(first, &shdr) && shdr.sh_info ? shdr.sh_info : ehdr->e_phnum;
}

/* Are both tables of headers in the file, whole and of known form? */
static int check_tables(Elf *elf, const GElf_Ehdr *ehdr, uint64_t file_size, size_t *ret_sections, size_t *ret_segments)
{
	size_t section_size = gelf_fsize(elf, ELF_T_SHDR, 1, EV_CURRENT), segment_size = gelf_fsize(elf, ELF_T_PHDR, 1, EV_CURRENT);
	size_t sections = 0, segments = 0;

	if (ehdr->e_shoff != 0) {
		if (ehdr->e_shentsize != section_size)
			return -EBADMSG;
		/* libelf takes a table outside of the file for none */
		if (!is_inside(file_size, ehdr->e_shoff, (ehdr->e_shnum > 0 ? ehdr->e_shnum : 1) * (uint64_t)section_size))
			return -EBADMSG;
		if (elf_getshdrnum(elf, &sections) < 0)
			return -EBADMSG;
		if (sections == 0 || !is_inside(file_size, ehdr->e_shoff, sections * (uint64_t)section_size))
			return -EBADMSG;
	}
	if (ehdr->e_phnum > 0) {
		if (ehdr->e_phoff == 0 || ehdr->e_phentsize != segment_size)
			return -EBADMSG;
		if (elf_getphdrnum(elf, &segments) < 0)
			return -EBADMSG;
		if (!is_inside(file_size, ehdr->e_phoff, count_segments(elf, ehdr, sections) * segment_size))
			return -EBADMSG;
	}
	*ret_sections = sections;
	*ret_segments = segments;
	return 0;
}

/* Without sections the segments define the required bytes. With sections the segments may be wrong: see build_id.c. */
static int examine_segments(Elf *elf, size_t count, uint64_t file_size, struct bid_elf_info *info)
{
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr))
			return -EBADMSG;
		if (phdr.p_type == PT_NULL || phdr.p_filesz == 0)
			continue;
		if (!is_inside(file_size, phdr.p_offset, phdr.p_filesz))
			return -EBADMSG;
		if (phdr.p_type == PT_LOAD && (phdr.p_flags & PF_X))
			info->has_code = true;
	}
	return 0;
}

/* .gnu_debugaltlink (dwz(1)): the name of the file, NUL, the bytes of its build-id. Anything else names no file. */
static int read_altlink(Elf *elf, const GElf_Shdr *shdr, struct bid_id *ret_id)
{
	Elf_Data *data;
	const char *end;

	if (shdr->sh_size > MAX_ALTLINK)
		return 0;
	/* as bytes, for any type of section */
	data = elf_getdata_rawchunk(elf, (int64_t)shdr->sh_offset, shdr->sh_size, ELF_T_BYTE);
	if (!data || !data->d_buf)
		return -EBADMSG;
	end = memchr(data->d_buf, '\0', data->d_size);
	if (end)
		bid_id_from_bytes(end + 1, data->d_size - (size_t)(end + 1 - (const char *)data->d_buf), ret_id);
	return 0;
}

static int examine_section(Elf *elf, const struct name_table *names, Elf_Scn *scn, uint64_t file_size, struct bid_elf_info *info,
			   bool *debug, bool *linked)
{
	const char *name;
	GElf_Shdr shdr;

	if (!gelf_getshdr(scn, &shdr))
		return -EBADMSG;
	if (shdr.sh_type == SHT_NULL || shdr.sh_type == SHT_NOBITS || shdr.sh_size == 0)
		return 0;
	if (!is_inside(file_size, shdr.sh_offset, shdr.sh_size))
		return -EBADMSG;

	if (shdr.sh_type == SHT_SYMTAB)
		info->has_symtab = true;
	if (shdr.sh_flags & SHF_EXECINSTR)
		info->has_code = true;
	name = !names->text ? "" : shdr.sh_name < names->len ? names->text + shdr.sh_name : NULL;
	if (!name)
		return -EBADMSG;
	if (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0)
		info->has_dwarf = true;
	if (strncmp(name, ".debug_", strlen(".debug_")) == 0 || strncmp(name, ".zdebug_", strlen(".zdebug_")) == 0)
		*debug = true;
	if (strcmp(name, ".gnu_debugaltlink") != 0 || *linked)
		return 0;
	*linked = true;
	return read_altlink(elf, &shdr, &info->alt);
}

static int examine_sections(Elf *elf, uint64_t file_size, struct bid_elf_info *info)
{
	struct name_table names;
	bool debug = false, linked = false;
	int r = find_names(elf, &names);

	if (r < 0)
		return r;
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
		r = examine_section(elf, &names, scn, file_size, info, &debug, &linked);
		if (r < 0)
			return r;
	}
	info->has_dwarf |= debug && !info->has_code;
	/* strip(1) keeps the link and removes all references to it */
	if (!info->has_dwarf)
		info->alt = (struct bid_id){ 0 };
	return 0;
}

int by_libelf_examine(int fd, struct bid_elf_info *ret_info)
{
	bid_cleanup(end) Elf *elf = NULL;
	struct bid_elf_info info = { 0 };
	size_t sections, segments;
	uint64_t file_size;
	struct stat st;
	GElf_Ehdr ehdr;
	int r;

	r = begin(fd, &elf, &ehdr);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	file_size = (uint64_t)st.st_size;

	r = check_tables(elf, &ehdr, file_size, &sections, &segments);
	if (r < 0)
		return r;
	if (sections > 0)
		r = examine_sections(elf, file_size, &info);
	else
		r = examine_segments(elf, segments, file_size, &info);
	if (r < 0)
		return r;
	r = find_id(fd, elf, &ehdr, &info.id);
	if (r < 0)
		return r;
	*ret_info = info;
	return 0;
}
