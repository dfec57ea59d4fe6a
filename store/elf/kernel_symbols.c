// SPDX-License-Identifier: LGPL-2.1-or-later
/* The symbol table of a kernel in the form of /proc/kallsyms. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/elf.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sections.h"

enum {
	NAME_LEN = 512, /* the kernel's KSYM_NAME_LEN, with the NUL */
	SEGMENTS_MAX = 64, /* segments to examine */
};

struct symbol {
	uint64_t address;
	const char *name; /* borrowed */
	uint32_t number; /* in the table */
	uint16_t rank; /* order among symbols of one address: the most likely symbol has the lowest rank */
	char type;
};

/* the parts of a kernel image with its symbols */
struct kernel_image {
	struct bid_sections sections;
	char *letters; /* owned; the letter of nm(1) for the symbols of each section, 0 for a section that is not loaded */
	struct bid_section symtab;
	char *names; /* owned; names of the symbols */
	size_t names_len;
};

static void image_release(struct kernel_image *image)
{
	bid_sections_release(&image->sections);
	free(image->letters);
	free(image->names);
}

static bool is_at(const char *name, size_t at, const char *part)
{
	return strncmp(name + at, part, strlen(part)) == 0;
}

/* Is @name like a symbol of a linker script that marks a beginning or an end? */
static bool is_mark(const char *name)
{
	size_t len = strlen(name);

	return len >= 8 && is_at(name, 0, "__") &&
	       (is_at(name, 2, "start_") || is_at(name, 2, "stop_") || is_at(name, 2, "end_") || is_at(name, len - 6, "_start") ||
		is_at(name, len - 4, "_end"));
}

/* scripts/kallsyms.c, compare_symbols(): a weak symbol comes last, before it a mark, before that a name with a leading "_". */
static uint16_t rank_of(char type, const char *name)
{
	return (uint16_t)((type == 'W') << 15 | is_mark(name) << 14 | strspn(name, "_"));
}

/* Order symbols of one address as the kernel does, and then by name as nm(1) does. */
static int by_address(const void *a, const void *b)
{
	const struct symbol *left = a, *right = b;
	int r;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	r = strcmp(left->name, right->name);
	return r != 0 ? r : left->number < right->number ? -1 : 1;
}

/* A kernel runs in the upper half of the address space, and nothing else does. 1, 0, or as bid_elf_reader_at(). */
static int is_kernel(struct bid_sections *sections)
{
	const struct bid_header *header = &sections->header;

	if (!header->form.wide || (header->type != ET_EXEC && header->type != ET_DYN))
		return 0;
	for (uint64_t i = 0; i < header->phnum && i < SEGMENTS_MAX; i++) {
		struct bid_segment segment;
		int r = bid_segment_at(&sections->reader, header, i, &segment);

		if (r < 0)
			return r == -ENODATA ? 0 : r;
		if (segment.type == PT_LOAD && segment.address >> 63)
			return 1;
	}
	return 0;
}

/* Return the letter of nm(1) for a symbol in @section. */
static char letter_of(const struct bid_section *section)
{
	if (!(section->flags & SHF_ALLOC))
		return 0;
	if (section->flags & SHF_EXECINSTR)
		return 'T';
	if (section->type == SHT_NOBITS)
		return 'B';
	return section->flags & SHF_WRITE ? 'D' : 'R';
}

/* Return the letter of a symbol; 0 for a symbol that the kernel leaves out of its own table: scripts/mksysmap. */
static char type_of(const struct kernel_image *image, const uint8_t *symbol, const char *name)
{
	static const char *const left_out[] = { "$", ".L", "__crc_", "__ksymtab_", "__kstrtab_", "__kstrtabns_" };
	const struct bid_header *header = &image->sections.header;
	uint64_t info = BID_FORM_FIELD(&header->form, symbol, Sym, st_info);
	uint64_t index = BID_FORM_FIELD(&header->form, symbol, Sym, st_shndx);
	unsigned type = ELF64_ST_TYPE(info), bind = ELF64_ST_BIND(info);
	char letter;

	if (type == STT_SECTION || type == STT_FILE || index == SHN_UNDEF || !*name)
		return 0;
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (strncmp(name, left_out[i], strlen(left_out[i])) == 0)
			return 0;
	if (index == SHN_ABS)
		return bind == STB_LOCAL ? 0 : 'A';
	if (bind == STB_WEAK)
		return type == STT_OBJECT ? 'V' : 'W';
	letter = index < SHN_LORESERVE && index < header->shnum ? image->letters[index] : 0;
	return letter && bind == STB_LOCAL ? (char)(letter | 0x20) : letter;
}

/* Offsets into the data of a CPU are no addresses if they begin with 0: scripts/kallsyms.c, make_percpus_absolute(). */
static void make_percpu_absolute(struct symbol *symbols, size_t n)
{
	bool from_zero = false;
	uint64_t end = 0;

	for (size_t i = 0; i < n; i++) {
		if (symbols[i].address == 0 && strcmp(symbols[i].name, "__per_cpu_start") == 0)
			from_zero = true;
		else if (strcmp(symbols[i].name, "__per_cpu_end") == 0)
			end = symbols[i].address;
	}
	for (size_t i = 0; i < n && from_zero; i++)
		if (symbols[i].address <= end)
			symbols[i].type = 'A';
}

/* The letters, and the first table of symbols. -ENODATA without one. */
static int look_at_sections(struct kernel_image *image)
{
	uint64_t n = image->sections.header.shnum;
	int r = bid_sections_check(&image->sections);

	if (r < 0)
		return r == -ENOENT ? -ENODATA : r;
	image->letters = calloc(n, 1);
	if (!image->letters)
		return -ENOMEM;
	for (uint64_t i = 1; i < n; i++) {
		struct bid_section section;

		r = bid_section_at(&image->sections, i, &section);
		if (r < 0)
			return r;
		image->letters[i] = letter_of(&section);
		if (section.type == SHT_SYMTAB && section.size && image->symtab.size == 0)
			image->symtab = section;
	}
	return image->symtab.size ? 0 : -ENODATA;
}

static int read_names(struct kernel_image *image)
{
	struct bid_section names;
	int r;

	if (image->symtab.link >= image->sections.header.shnum)
		return -EBADMSG;
	r = bid_section_at(&image->sections, image->symtab.link, &names);
	if (r == 0)
		r = bid_elf_reader_table(image->sections.fd, names.offset, names.size, BID_LIMIT_NAMES, &image->names);
	if (r == 0)
		image->names_len = names.size;
	return r;
}

/* Return the name at @offset, or NULL for a name that no kernel has. */
static const char *name_at(const struct kernel_image *image, uint64_t offset)
{
	size_t room = offset < image->names_len ? image->names_len - (size_t)offset : 0, len;
	const char *name = image->names + (room ? offset : 0);

	len = strnlen(name, room < NAME_LEN ? room : NAME_LEN);
	return len < room && len < NAME_LEN && !strpbrk(name, " \t\n") ? name : NULL;
}

/* Collect the symbols of the table in order. The caller frees the array; @image owns the names. */
static int collect_symbols(struct kernel_image *image, struct symbol **ret_symbols, size_t *ret_n)
{
	const struct bid_form *form = &image->sections.header.form;
	bid_auto_free struct symbol *symbols = NULL;
	/* the class of the file gives the size of a symbol, not the section header */
	uint64_t total = image->symtab.size / BID_FORM_SIZE(form, Sym);
	size_t n = 0, room = 0;
	struct bid_elf_reader reader;

	if (total > BID_LIMIT_SYMBOLS)
		return -E2BIG;
	bid_elf_reader_init(&reader, NULL, 0, image->sections.fd);
	bid_elf_reader_allow_table(&reader, total, BID_FORM_SIZE(form, Sym));
	for (uint64_t i = 0; i < total; i++) {
		const char *name;
		const uint8_t *data;
		char type;
		int r = bid_elf_reader_at(&reader, image->symtab.offset + i * BID_FORM_SIZE(form, Sym), BID_FORM_SIZE(form, Sym),
					  &data);

		if (r < 0)
			return r;
		name = name_at(image, BID_FORM_FIELD(form, data, Sym, st_name));
		type = name ? type_of(image, data, name) : 0;
		if (!type)
			continue;
		if (bid_array_grow(symbols, n, room) < 0)
			return -ENOMEM;
		symbols[n++] = (struct symbol){ .address = BID_FORM_FIELD(form, data, Sym, st_value),
						.number = (uint32_t)i,
						.name = name,
						.rank = rank_of(type, name),
						.type = type };
	}
	if (n == 0)
		return -ENODATA;
	make_percpu_absolute(symbols, n);
	qsort(symbols, n, sizeof(*symbols), by_address);
	*ret_symbols = bid_steal(symbols);
	*ret_n = n;
	return 0;
}

static int write_symbols(const struct symbol *symbols, size_t n, FILE *out)
{
	size_t size = 0;

	for (size_t i = 0; i < n; i++) {
		int len = fprintf(out, "%016llx %c %s\n", (unsigned long long)symbols[i].address, symbols[i].type, symbols[i].name);

		if (len < 0)
			return -ENOMEM;
		size += (size_t)len;
		if (size > BID_LIMIT_KALLSYMS)
			return -EFBIG;
	}
	return 0;
}

int bid_elf_is_kernel(int fd)
{
	bid_cleanup(bid_sections_release) struct bid_sections sections;
	int r = bid_sections_open(&sections, fd);

	return bid_elf_reader_damage(r < 0 ? r : is_kernel(&sections));
}

int bid_elf_kallsyms(int fd, FILE *out)
{
	bid_cleanup(image_release) struct kernel_image image = { 0 };
	bid_auto_free struct symbol *symbols = NULL;
	size_t n;
	int r;

	r = bid_sections_open(&image.sections, fd);
	if (r == 0)
		r = is_kernel(&image.sections);
	if (r <= 0)
		return r == 0 ? -ENODATA : bid_elf_reader_damage(r);
	r = look_at_sections(&image);
	if (r == -ENODATA)
		return r;
	if (r == 0)
		r = read_names(&image);
	if (r < 0)
		return bid_elf_reader_damage(r);
	r = collect_symbols(&image, &symbols, &n);
	if (r == 0)
		r = write_symbols(symbols, n, out);
	return r == -E2BIG ? -EBADMSG : r;
}
