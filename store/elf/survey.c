// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bid_elf_examine() of the usual case, with two or three reads: a whole file with few sections, and its id in one of them. Nothing
 * is refused here: libelf is asked about whatever is unusual or looks wrong.
 */
#include <bid/elf.h>

#include <errno.h>
#include <sys/stat.h>

#include "examine.h"
#include "header.h"
#include "note.h"

enum {
	BEFORE = 1024, /* section headers are at the end of most files, and their names right before them: one read has both */
	TAIL_MAX = 16 * 1024, /* bytes of both */
};

struct survey {
	struct bid_bytes bytes;
	struct bid_header header;
	uint64_t file_size;
	uint8_t head[BID_BYTES_HEAD];
	uint8_t tail[TAIL_MAX];
	uint64_t tail_offset;
	uint64_t tail_len;
	const uint8_t *names; /* of the sections; NUL is the last of them */
	uint64_t names_len;
	bool refers; /* has .gnu_debugaltlink */
};

struct section {
	uint64_t name, type, flags, offset, size, align;
};

static bool is_inside(const struct survey *survey, uint64_t offset, uint64_t size)
{
	return offset <= survey->file_size && size <= survey->file_size - offset;
}

/* Are both tables of headers in the file and of known form, and the one of sections neither missing nor large? */
static bool has_plain_tables(const struct survey *survey)
{
	const struct bid_header *header = &survey->header;
	const struct bid_form *form = &header->form;
	size_t shentsize = BID_FORM_SIZE(form, Shdr), phentsize = BID_FORM_SIZE(form, Phdr);
	/* header->phnum is not that of a relocatable file */
	uint64_t phnum = BID_FORM_FIELD(form, survey->head, Ehdr, e_phnum);

	if (header->type == ET_CORE || header->shoff == 0 || header->shnum < 2 || header->shentsize != shentsize ||
	    header->shnum > (TAIL_MAX - BEFORE) / shentsize || !is_inside(survey, header->shoff, header->shnum * shentsize))
		return false;
	return phnum == 0 || (phnum != PN_XNUM && header->phoff != 0 && header->phentsize == phentsize &&
			      is_inside(survey, header->phoff, phnum * phentsize));
}

/* The section headers, and what is before them. */
static int read_tail(struct survey *survey)
{
	const struct bid_header *header = &survey->header;
	uint64_t before = header->shoff < BEFORE ? header->shoff : BEFORE;
	uint64_t wanted = before + header->shnum * header->shentsize;
	size_t len;
	int r;

	survey->tail_offset = header->shoff - before;
	r = bid_bytes_read(survey->bytes.fd, survey->tail, wanted, wanted, survey->tail_offset, &len);
	if (r < 0)
		return r;
	survey->tail_len = len;
	return len == wanted ? 0 : -EAGAIN;
}

static struct section section_at(const struct survey *survey, uint64_t index)
{
	const struct bid_header *header = &survey->header;
	const struct bid_form *form = &header->form;
	const uint8_t *data = survey->tail + (header->shoff - survey->tail_offset) + index * header->shentsize;

	return (struct section){
		.name = BID_FORM_FIELD(form, data, Shdr, sh_name),
		.type = BID_FORM_FIELD(form, data, Shdr, sh_type),
		.flags = BID_FORM_FIELD(form, data, Shdr, sh_flags),
		.offset = BID_FORM_FIELD(form, data, Shdr, sh_offset),
		.size = BID_FORM_FIELD(form, data, Shdr, sh_size),
		.align = BID_FORM_FIELD(form, data, Shdr, sh_addralign),
	};
}

/* The names, if they are in the tail. */
static int find_names(struct survey *survey)
{
	uint64_t index = BID_FORM_FIELD(&survey->header.form, survey->head, Ehdr, e_shstrndx);
	struct section names;

	if (index == SHN_UNDEF || index >= survey->header.shnum)
		return -EAGAIN;
	names = section_at(survey, index);
	if (names.type != SHT_STRTAB || names.flags & SHF_COMPRESSED || names.size == 0 || names.size > survey->tail_len ||
	    names.offset < survey->tail_offset || names.offset - survey->tail_offset > survey->tail_len - names.size)
		return -EAGAIN;
	survey->names = survey->tail + (names.offset - survey->tail_offset);
	survey->names_len = names.size;
	return survey->names[names.size - 1] == '\0' ? 0 : -EAGAIN;
}

/* As examine_section() of examine.c. */
static int look_at(struct survey *survey, const struct section *section, struct bid_note_found *found, struct bid_elf_info *info)
{
	const char *name;
	int r;

	if (section->type == SHT_NULL || section->type == SHT_NOBITS || section->size == 0)
		return 0;
	if (!is_inside(survey, section->offset, section->size) || section->name >= survey->names_len)
		return -EAGAIN;
	name = (const char *)survey->names + section->name;
	survey->refers |= strcmp(name, ".gnu_debugaltlink") == 0;
	info->has_symtab |= section->type == SHT_SYMTAB;
	info->has_code |= (section->flags & SHF_EXECINSTR) != 0;
	info->has_dwarf |= strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0;
	if (section->type != SHT_NOTE || found->id.len > 0)
		return 0;
	r = bid_note_scan(&survey->bytes, &survey->header.form, section->offset, section->size, section->align, found);
	/* these are no notes, which is the next section's chance */
	return r == -EBADMSG ? 0 : r;
}

static int survey_sections(struct survey *survey, struct bid_elf_info *info)
{
	struct bid_note_found found = { 0 };
	int r = 0;

	for (uint64_t i = 1; r == 0 && i < survey->header.shnum; i++) {
		struct section section = section_at(survey, i);

		r = look_at(survey, &section, &found, info);
	}
	info->id = found.id;
	/* what the link says is libelf's to read, where it says anything */
	return r == 0 && (found.id.len == 0 || (survey->refers && info->has_dwarf)) ? -EAGAIN : r;
}

/* -EAGAIN: ask libelf. */
static int survey_file(int fd, struct bid_elf_info *ret_info)
{
	struct bid_elf_info info = { 0 };
	struct survey survey; /* not worth clearing */
	struct stat st;
	size_t len;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	survey.file_size = (uint64_t)st.st_size;
	survey.refers = false;
	r = bid_bytes_read(fd, survey.head, sizeof(Elf64_Ehdr), sizeof(survey.head), 0, &len);
	if (r < 0)
		return r;
	bid_bytes_init(&survey.bytes, survey.head, len, fd);
	r = bid_header_read(&survey.bytes, &survey.header);
	if (r == 0)
		r = has_plain_tables(&survey) ? read_tail(&survey) : -EAGAIN;
	if (r == 0)
		r = find_names(&survey);
	if (r == 0)
		r = survey_sections(&survey, &info);
	if (r == -ENOEXEC || r == -ENODATA || r == -E2BIG || r == -EBADMSG)
		return -EAGAIN;
	if (r == 0)
		*ret_info = info;
	return r;
}

int bid_elf_examine(int fd, struct bid_elf_info *ret_info)
{
	int r = survey_file(fd, ret_info);

	return r == -EAGAIN ? bid_elf_examine_by_libelf(fd, ret_info) : r;
}
