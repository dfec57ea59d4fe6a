// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Put an ELF file and its separate debug file together. The result begins with the bytes of the ELF file up to the end of its
 * segments. The other sections of the debug file follow, and then the section headers, in its order: its symbols refer to them.
 *
 * libelf reads and encodes the headers. It does not write the file: elf_update(3) wants all sections in memory, and fills the gaps
 * for sections without data with zeros. Here the kernel copies the contents, and holes stay holes.
 */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "sections.h"

enum {
	OTHERS_MAX = 256, /* sections of a stripped file outside of its segments */
	ALIGN_MAX = 4096, /* alignment of a section outside of the segments */
};

struct input {
	struct bid_sections sections; /* its names, and the checks of its size */
	Elf *elf; /* owned; NULL before it is read */
	GElf_Ehdr ehdr;
	size_t n, shstrndx; /* number of sections; index of their names */
};

/* A section of the result. */
struct output {
	GElf_Shdr shdr;
	int fd; /* file with its contents, borrowed; -1 for contents in a segment, or none */
	uint64_t from; /* their offset in that file */
};

/* A section of the ELF file outside of its segments. */
struct other {
	size_t index;
	const char *name; /* borrowed */
};

struct merge {
	struct input *elf, *debug; /* borrowed */
	struct output *outputs; /* owned; one for each section of the debug file, index 0 is the empty one */
	struct other others[OTHERS_MAX];
	size_t n_others;
	uint64_t segments_end, shoff, size; /* offsets in the result */
};

static void input_release(struct input *input)
{
	elf_end(input->elf);
	bid_sections_release(&input->sections);
}

static void merge_release(struct merge *merge)
{
	free(merge->outputs);
}

/* Read the headers at @fd. The checks before elf_begin(3) limit the memory that it takes. */
static int input_read(struct input *input, int fd)
{
	int r = bid_sections_open(&input->sections, fd);

	if (r == 0 && input->sections.header.type != ET_EXEC && input->sections.header.type != ET_DYN)
		r = -EOPNOTSUPP;
	if (r == 0 && (input->sections.header.odd || input->sections.header.phnum >= PN_XNUM))
		r = -EBADMSG;
	if (r == 0)
		r = bid_sections_check(&input->sections);
	if (r == 0)
		r = bid_sections_read_names(&input->sections);
	if (r < 0)
		return r == -ENOENT || r == -E2BIG ? -EOPNOTSUPP : r;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -EOPNOTSUPP;
	input->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!input->elf || !gelf_getehdr(input->elf, &input->ehdr) || elf_getshdrnum(input->elf, &input->n) < 0 ||
	    elf_getshdrstrndx(input->elf, &input->shstrndx) < 0 || input->n != input->sections.header.shnum)
		return -EBADMSG;
	return 0;
}

static const char *name_of(const struct input *input, const GElf_Shdr *shdr)
{
	return shdr->sh_name < input->sections.names_len ? input->sections.names + shdr->sh_name : "";
}

/* Read a section header. Returns -EBADMSG if its bytes are not in the file, or its name is longer than a file name. */
static int read_shdr(const struct input *input, size_t index, GElf_Shdr *ret_shdr)
{
	if (!gelf_getshdr(elf_getscn(input->elf, index), ret_shdr))
		return -EBADMSG;
	if (ret_shdr->sh_type != SHT_NOBITS && !bid_sections_inside(&input->sections, ret_shdr->sh_offset, ret_shdr->sh_size))
		return -EBADMSG;
	/* many sections may have one name of many MiB */
	return strnlen(name_of(input, ret_shdr), NAME_MAX + 1) > NAME_MAX ? -EBADMSG : 0;
}

static bool is_loaded(const GElf_Shdr *shdr)
{
	return shdr->sh_flags & SHF_ALLOC;
}

/* Find the end of all that a loader reads of the ELF file. The result has these bytes at the same offsets. */
static int find_segments_end(struct merge *merge)
{
	const struct input *elf = merge->elf;
	uint64_t end = gelf_fsize(elf->elf, ELF_T_EHDR, 1, EV_CURRENT);

	for (size_t i = 0; i < elf->ehdr.e_phnum; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf->elf, (int)i, &phdr) || !bid_sections_inside(&elf->sections, phdr.p_offset, phdr.p_filesz))
			return -EBADMSG;
		if (phdr.p_filesz > 0 && phdr.p_offset + phdr.p_filesz > end)
			end = phdr.p_offset + phdr.p_filesz;
	}
	if (elf->ehdr.e_phnum > 0 && elf->ehdr.e_phoff + (uint64_t)elf->ehdr.e_phnum * elf->ehdr.e_phentsize > end)
		end = elf->ehdr.e_phoff + (uint64_t)elf->ehdr.e_phnum * elf->ehdr.e_phentsize;
	for (size_t i = 1; i < elf->n; i++) {
		GElf_Shdr shdr;
		int r = read_shdr(elf, i, &shdr);

		if (r < 0)
			return r;
		if (is_loaded(&shdr) && shdr.sh_type != SHT_NOBITS && shdr.sh_offset + shdr.sh_size > end)
			end = shdr.sh_offset + shdr.sh_size;
	}
	merge->segments_end = end;
	return 0;
}

/* List the sections of the ELF file outside of its segments. */
static int list_others(struct merge *merge)
{
	const struct input *elf = merge->elf;

	for (size_t i = 1; i < elf->n; i++) {
		GElf_Shdr shdr;
		int r = read_shdr(elf, i, &shdr);

		if (r < 0)
			return r;
		if (is_loaded(&shdr) || shdr.sh_type == SHT_NULL || shdr.sh_type == SHT_NOBITS || i == elf->shstrndx)
			continue;
		if (merge->n_others == OTHERS_MAX)
			return -EOPNOTSUPP;
		merge->others[merge->n_others++] = (struct other){ .index = i, .name = name_of(elf, &shdr) };
	}
	return 0;
}

static const struct other *find_other(const struct merge *merge, const char *name)
{
	for (size_t i = 0; i < merge->n_others; i++)
		if (strcmp(merge->others[i].name, name) == 0)
			return &merge->others[i];
	return NULL;
}

/* Take section @index, which a loader reads, from the ELF file. Both files must have it: programs refer to sections by index. */
static int take_loaded(struct merge *merge, size_t index, const GElf_Shdr *in_debug)
{
	struct output *output = &merge->outputs[index];
	GElf_Shdr shdr;
	int r;

	if (index >= merge->elf->n)
		return -EBADMSG;
	r = read_shdr(merge->elf, index, &shdr);
	if (r < 0)
		return r;
	if (!is_loaded(&shdr) || shdr.sh_addr != in_debug->sh_addr || shdr.sh_size != in_debug->sh_size ||
	    strcmp(name_of(merge->elf, &shdr), name_of(merge->debug, in_debug)) != 0)
		return -EBADMSG;
	output->shdr = shdr;
	output->shdr.sh_name = in_debug->sh_name;
	output->shdr.sh_link = in_debug->sh_link;
	output->shdr.sh_info = in_debug->sh_info;
	return 0;
}

/* Take section @index of the debug file. eu-strip(1) -g leaves a place without bytes for what stays in the ELF file. */
static int take_of_debug(struct merge *merge, size_t index)
{
	struct output *output = &merge->outputs[index];
	const struct other *other;
	GElf_Shdr shdr;
	int r = read_shdr(merge->debug, index, &shdr);

	if (r < 0)
		return r;
	if (is_loaded(&shdr))
		return take_loaded(merge, index, &shdr);
	*output = (struct output){ .shdr = shdr, .fd = -1 };
	if (shdr.sh_type != SHT_NULL && shdr.sh_type != SHT_NOBITS) {
		output->fd = merge->debug->sections.fd;
		output->from = shdr.sh_offset;
	}
	other = shdr.sh_type == SHT_NOBITS ? find_other(merge, name_of(merge->debug, &shdr)) : NULL;
	if (!other)
		return 0;
	r = read_shdr(merge->elf, other->index, &output->shdr);
	output->fd = merge->elf->sections.fd;
	output->from = output->shdr.sh_offset;
	output->shdr.sh_name = shdr.sh_name;
	output->shdr.sh_link = shdr.sh_link;
	return r;
}

/* The sections that a loader reads are the same in both files. */
static int check_loaded(const struct merge *merge)
{
	for (size_t i = 1; i < merge->elf->n; i++) {
		GElf_Shdr shdr;
		int r = read_shdr(merge->elf, i, &shdr);

		if (r < 0)
			return r;
		if (is_loaded(&shdr) && (i >= merge->debug->n || !is_loaded(&merge->outputs[i].shdr)))
			return -EBADMSG;
	}
	return 0;
}

static int list_outputs(struct merge *merge)
{
	const struct input *debug = merge->debug;
	int r = debug->shstrndx > 0 && debug->shstrndx < debug->n ? list_others(merge) : -EBADMSG;

	if (r < 0)
		return r;
	merge->outputs = calloc(debug->n, sizeof(*merge->outputs));
	if (!merge->outputs)
		return -ENOMEM;
	merge->outputs[0].fd = -1;
	for (size_t i = 1; r == 0 && i < debug->n; i++) {
		merge->outputs[i].fd = -1;
		r = take_of_debug(merge, i);
	}
	return r == 0 ? check_loaded(merge) : r;
}

static int align_offset(uint64_t *at, uint64_t align)
{
	if (align > ALIGN_MAX || (align & (align - 1)) != 0)
		return -EBADMSG;
	if (align > 1)
		*at = (*at + align - 1) & ~(align - 1);
	return 0;
}

/* Bytes of one of the files that are copied. */
struct range {
	int fd;
	uint64_t from, size;
};

static int by_place(const void *a, const void *b)
{
	const struct range *one = a, *other = b;

	if (one->fd != other->fd)
		return one->fd < other->fd ? -1 : 1;
	return (one->from > other->from) - (one->from < other->from);
}

/*
 * No byte is in two sections (ELF gABI, "Sections"). The result then has no more bytes on disk than both files, although a file may
 * claim a size of many TiB.
 */
static int check_overlap(const struct merge *merge)
{
	bid_auto_free struct range *ranges = calloc(merge->debug->n, sizeof(*ranges));
	size_t n = 0;

	if (!ranges)
		return -ENOMEM;
	for (size_t i = 1; i < merge->debug->n; i++) {
		const struct output *output = &merge->outputs[i];

		if (output->fd >= 0 && output->shdr.sh_size > 0)
			ranges[n++] = (struct range){ output->fd, output->from, output->shdr.sh_size };
	}
	qsort(ranges, n, sizeof(*ranges), by_place);
	for (size_t i = 1; i < n; i++)
		if (ranges[i].fd == ranges[i - 1].fd && ranges[i].from - ranges[i - 1].from < ranges[i - 1].size)
			return -EBADMSG;
	return 0;
}

/* Choose the offsets of the sections outside of the segments, and of the section headers. */
static int lay_out(struct merge *merge)
{
	const struct input *elf = merge->elf, *debug = merge->debug;
	uint64_t at = merge->segments_end;
	int r = check_overlap(merge);

	for (size_t i = 1; r == 0 && i < debug->n; i++) {
		struct output *output = &merge->outputs[i];

		if (is_loaded(&output->shdr))
			continue;
		r = align_offset(&at, output->shdr.sh_addralign);
		output->shdr.sh_offset = at;
		at += output->fd >= 0 ? output->shdr.sh_size : 0;
	}
	if (r == 0)
		r = align_offset(&at, gelf_fsize(elf->elf, ELF_T_ADDR, 1, EV_CURRENT));
	merge->shoff = at;
	merge->size = at + gelf_fsize(elf->elf, ELF_T_SHDR, debug->n, EV_CURRENT);
	return r;
}

/* Encode a header of the file, and write it. */
static int write_header(Elf *out, Elf_Type type, void *header, size_t size, unsigned encoding, int to, uint64_t offset)
{
	uint8_t buffer[sizeof(Elf64_Ehdr)];
	Elf_Data from = { .d_buf = header, .d_type = type, .d_size = size, .d_version = EV_CURRENT };
	Elf_Data data = { .d_buf = buffer, .d_type = type, .d_size = sizeof(buffer), .d_version = EV_CURRENT };

	_Static_assert(sizeof(Elf64_Ehdr) >= sizeof(Elf64_Shdr), "a buffer for both");
	if (!header || !gelf_xlatetof(out, &data, &from, encoding))
		return -EBADMSG;
	return bid_pwrite_full(to, buffer, data.d_size, (off_t)offset);
}

/* Write the ELF header and the section headers. libelf fits them into the class of @out. */
static int write_headers(const struct merge *merge, Elf *out, int to)
{
	GElf_Ehdr ehdr = merge->elf->ehdr;
	bool wide = ehdr.e_ident[EI_CLASS] == ELFCLASS64;
	unsigned encoding = ehdr.e_ident[EI_DATA];
	size_t n = merge->debug->n, names = merge->debug->shstrndx, size = gelf_fsize(merge->elf->elf, ELF_T_SHDR, 1, EV_CURRENT);
	GElf_Shdr *first = &merge->outputs[0].shdr;
	Elf_Scn *scn;
	int r;

	ehdr.e_shoff = merge->shoff;
	ehdr.e_shnum = (GElf_Half)(n < SHN_LORESERVE ? n : 0);
	first->sh_size = n < SHN_LORESERVE ? 0 : n;
	ehdr.e_shstrndx = (GElf_Half)(names < SHN_LORESERVE ? names : SHN_XINDEX);
	first->sh_link = names < SHN_LORESERVE ? 0 : (GElf_Word)names;
	if (!gelf_newehdr(out, ehdr.e_ident[EI_CLASS]) || !gelf_update_ehdr(out, &ehdr))
		return -EBADMSG;
	r = write_header(out, ELF_T_EHDR, wide ? (void *)elf64_getehdr(out) : (void *)elf32_getehdr(out),
			 gelf_fsize(merge->elf->elf, ELF_T_EHDR, 1, EV_CURRENT), encoding, to, 0);
	scn = elf_newscn(out);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (!gelf_update_shdr(scn, &merge->outputs[i].shdr))
			return -EBADMSG;
		r = write_header(out, ELF_T_SHDR, wide ? (void *)elf64_getshdr(scn) : (void *)elf32_getshdr(scn), size, encoding,
				 to, merge->shoff + i * size);
	}
	return r;
}

static int write_contents(const struct merge *merge, int to)
{
	int r = ftruncate(to, (off_t)merge->size) < 0 ? -errno : 0;

	if (r == 0)
		r = bid_copy_range(merge->elf->sections.fd, 0, merge->segments_end, to, 0);
	for (size_t i = 1; r == 0 && i < merge->debug->n; i++) {
		const struct output *output = &merge->outputs[i];

		if (output->fd >= 0)
			r = bid_copy_range(output->fd, (off_t)output->from, output->shdr.sh_size, to,
					   (off_t)output->shdr.sh_offset);
	}
	return r;
}

static int write_merged(const struct merge *merge, int to)
{
	Elf *out = elf_begin(to, ELF_C_WRITE, NULL);
	int r = out ? write_contents(merge, to) : -ENOMEM;

	if (r == 0)
		r = write_headers(merge, out, to);
	elf_end(out);
	return r;
}

static bool belong_together(const struct input *elf, const struct input *debug)
{
	return elf->ehdr.e_ident[EI_CLASS] == debug->ehdr.e_ident[EI_CLASS] &&
	       elf->ehdr.e_ident[EI_DATA] == debug->ehdr.e_ident[EI_DATA] && elf->ehdr.e_machine == debug->ehdr.e_machine &&
	       elf->ehdr.e_type == debug->ehdr.e_type;
}

int bid_elf_unstrip(int fd, int debug_fd, uint64_t max, int to)
{
	bid_cleanup(input_release) struct input elf = { 0 };
	bid_cleanup(input_release) struct input debug = { 0 };
	bid_cleanup(merge_release) struct merge merge = { .elf = &elf, .debug = &debug };
	int r = input_read(&elf, fd);

	if (r == 0)
		r = input_read(&debug, debug_fd);
	if (r == 0 && !belong_together(&elf, &debug))
		r = -EBADMSG;
	if (r == 0)
		r = find_segments_end(&merge);
	if (r == 0)
		r = list_outputs(&merge);
	if (r == 0)
		r = lay_out(&merge);
	if (r == 0 && merge.size > max)
		r = -EFBIG;
	return r == 0 ? write_merged(&merge, to) : r;
}
