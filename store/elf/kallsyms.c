// SPDX-License-Identifier: LGPL-2.1-or-later
/* The symbol table of a kernel, as the kernel itself would print it. */
#include <bid/elf.h>

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "examine.h"

enum {
	NAME_LEN = 512, /* the kernel's KSYM_NAME_LEN, with the NUL */
	LINE_SIZE = NAME_LEN + 32,
	CHUNK = 1 << 16,
};

struct symbol {
	uint64_t address;
	size_t number; /* in the table */
	const char *name; /* borrowed */
	char type;
};

static bool is_at(const char *name, size_t at, const char *part)
{
	return strncmp(name + at, part, strlen(part)) == 0;
}

/* Does it look like what a linker script defines, to mark where something begins or ends? */
static bool is_mark(const char *name)
{
	size_t len = strlen(name);

	return len >= 8 && is_at(name, 0, "__") &&
	       (is_at(name, 2, "start_") || is_at(name, 2, "stop_") || is_at(name, 2, "end_") || is_at(name, len - 6, "_start") ||
		is_at(name, len - 4, "_end"));
}

/*
 * What has one address is in the kernel's order: what is most probably meant comes first (scripts/kallsyms.c, compare_symbols()),
 * and else what nm(1) prints first, which goes by the name.
 */
static int compare(const void *a, const void *b)
{
	const struct symbol *left = a, *right = b;
	int r;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	r = (left->type == 'W') - (right->type == 'W');
	if (r == 0)
		r = is_mark(left->name) - is_mark(right->name);
	if (r == 0)
		r = (int)strspn(left->name, "_") - (int)strspn(right->name, "_");
	if (r == 0)
		r = strcmp(left->name, right->name);
	return r != 0 ? r : left->number < right->number ? -1 : 1;
}

/* A kernel runs in the upper half of the address space, and nothing else does. */
static bool is_kernel(Elf *elf, const GElf_Ehdr *ehdr)
{
	size_t n;

	if (ehdr->e_ident[EI_CLASS] != ELFCLASS64 || (ehdr->e_type != ET_EXEC && ehdr->e_type != ET_DYN) ||
	    elf_getphdrnum(elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n && i < 64; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_LOAD && phdr.p_vaddr >> 63)
			return true;
	}
	return false;
}

/* The letter of nm(1); 0 for what the kernel leaves out of its own table: scripts/mksysmap. */
static char type_of(Elf *elf, const GElf_Sym *symbol, const char *name)
{
	static const char *const left_out[] = { "$", ".L", "__crc_", "__ksymtab_", "__kstrtab_", "__kstrtabns_" };
	bool local = GELF_ST_BIND(symbol->st_info) == STB_LOCAL;
	unsigned type = GELF_ST_TYPE(symbol->st_info);
	GElf_Shdr shdr;
	Elf_Scn *scn;
	char letter;

	if (type == STT_SECTION || type == STT_FILE || symbol->st_shndx == SHN_UNDEF || !*name)
		return 0;
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (strncmp(name, left_out[i], strlen(left_out[i])) == 0)
			return 0;
	if (symbol->st_shndx == SHN_ABS)
		return local ? 0 : 'A';
	if (GELF_ST_BIND(symbol->st_info) == STB_WEAK)
		return type == STT_OBJECT ? 'V' : 'W';
	scn = symbol->st_shndx < SHN_LORESERVE ? elf_getscn(elf, symbol->st_shndx) : NULL;
	if (!scn || !gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_ALLOC))
		return 0;
	if (shdr.sh_flags & SHF_EXECINSTR)
		letter = 'T';
	else if (shdr.sh_type == SHT_NOBITS)
		letter = 'B';
	else
		letter = shdr.sh_flags & SHF_WRITE ? 'D' : 'R';
	return local ? (char)(letter | 0x20) : letter;
}

/* Offsets into the data of a CPU, where those begin with 0, are no addresses: scripts/kallsyms.c, make_percpus_absolute(). */
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

static Elf_Scn *find_symtab(Elf *elf, GElf_Shdr *ret_shdr)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, ret_shdr) && ret_shdr->sh_type == SHT_SYMTAB && ret_shdr->sh_size && ret_shdr->sh_entsize)
			return scn;
	return NULL;
}

/*
 * The name at @offset of the table @names, or NULL if the kernel could not have it. Not elf_strptr(3), which looks for the end of a
 * name as far as it is: of a million names that all end with the file, that takes for ever.
 */
static const char *name_at(const Elf_Data *names, size_t offset)
{
	const char *name = (const char *)names->d_buf + offset;
	size_t room = offset < names->d_size ? names->d_size - offset : 0, len = strnlen(name, room < NAME_LEN ? room : NAME_LEN);

	return len < room && len < NAME_LEN && !strpbrk(name, " \t\n") ? name : NULL;
}

/* The symbols that belong into the table, sorted, for the caller to free; their names are @elf's. */
static int collect(Elf *elf, struct symbol **ret_symbols, size_t *ret_n)
{
	bid_auto_free struct symbol *symbols = NULL;
	size_t total, n = 0;
	Elf_Data *data, *names;
	GElf_Shdr shdr;
	Elf_Scn *scn = find_symtab(elf, &shdr);

	if (!scn)
		return -ENODATA;
	data = elf_getdata(scn, NULL);
	names = elf_rawdata(elf_getscn(elf, shdr.sh_link), NULL);
	if (!data || !names || !names->d_buf)
		return -EBADMSG;
	/* not by what the section says is the size of one */
	total = data->d_size / gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	symbols = calloc(total ? total : 1, sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	for (size_t i = 0; i < total; i++) {
		const char *name;
		GElf_Sym symbol;
		char type;

		if (!gelf_getsym(data, (int)i, &symbol))
			return -EBADMSG;
		name = name_at(names, symbol.st_name);
		type = name ? type_of(elf, &symbol, name) : 0;
		if (type)
			symbols[n++] = (struct symbol){ .address = symbol.st_value, .number = i, .name = name, .type = type };
	}
	if (n == 0)
		return -ENODATA;
	make_percpu_absolute(symbols, n);
	qsort(symbols, n, sizeof(*symbols), compare);
	*ret_symbols = bid_steal(symbols);
	*ret_n = n;
	return 0;
}

static int print(const struct symbol *symbols, size_t n, int (*write)(void *user, const void *data, size_t len), void *user)
{
	bid_auto_free char *chunk = malloc(CHUNK);
	size_t used = 0;
	int r = 0;

	if (!chunk)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (CHUNK - used < LINE_SIZE) {
			r = write(user, chunk, used);
			used = 0;
		}
		used += (size_t)snprintf(chunk + used, LINE_SIZE, "%016llx %c %s\n", (unsigned long long)symbols[i].address,
					 symbols[i].type, symbols[i].name);
	}
	return r < 0 ? r : write(user, chunk, used);
}

int bid_elf_is_kernel(int fd)
{
	bid_cleanup(bid_elf_cleanup) Elf *elf = NULL;
	GElf_Ehdr ehdr;
	int r = bid_elf_open(fd, &elf, &ehdr);

	return r < 0 ? r : is_kernel(elf, &ehdr);
}

int bid_elf_kallsyms(int fd, int (*write)(void *user, const void *data, size_t len), void *user)
{
	bid_cleanup(bid_elf_cleanup) Elf *elf = NULL;
	bid_auto_free struct symbol *symbols = NULL;
	GElf_Ehdr ehdr;
	size_t n;
	int r;

	r = bid_elf_open(fd, &elf, &ehdr);
	if (r < 0)
		return r;
	if (!is_kernel(elf, &ehdr))
		return -ENODATA;
	r = collect(elf, &symbols, &n);
	return r < 0 ? r : print(symbols, n, write, user);
}
