// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files of a few KiB on disk with a huge size: tables inside a hole, or with a huge number of entries. No reader may allocate
 * memory for sizes that only the file claims. The limit is on the most memory that this program has ever had, so no test may need
 * much.
 */
#include "elf_fixture.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"

enum {
	MEMORY_MAX = 64 << 10, /* KiB; a program of a sanitized build begins with some 20 MiB */
	NAMES = 0x200, /* where things are in a file */
	SECTIONS = 0x1000,
	SYMBOLS = 1 << 20,
};

#define GIB (UINT64_C(1) << 30)

static const char names[] = "\0.shstrtab\0.symtab\0.text";
enum { SHSTRTAB = 1, SYMTAB = 11, TEXT = 19 };

static void put(int fd, const void *data, size_t len, uint64_t offset)
{
	assert_int_equal(bid_pwrite_full(fd, data, len, (off_t)offset), 0);
}

/* A kernel of @n sections, the first of which are in @table and all others in a hole, in a file of @size bytes. */
static int make_kernel(const Elf64_Shdr *table, size_t in_table, uint64_t n, uint64_t size)
{
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			     __BYTE_ORDER == __BIG_ENDIAN ? ELFDATA2MSB : ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shoff = SECTIONS,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shstrndx = 1,
	};
	Elf64_Phdr segment = { .p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = 0xffffffff81000000, .p_filesz = 16 };
	Elf64_Shdr first = { .sh_size = n };
	int fd = elf_fixture_memory(&header, sizeof(header));

	put(fd, &segment, sizeof(segment), sizeof(header));
	put(fd, names, sizeof(names), NAMES);
	put(fd, &first, sizeof(first), SECTIONS);
	put(fd, table, in_table * sizeof(*table), SECTIONS + sizeof(first));
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static Elf64_Shdr names_at(uint64_t offset, uint64_t size)
{
	return (Elf64_Shdr){ .sh_name = SHSTRTAB, .sh_type = SHT_STRTAB, .sh_offset = offset, .sh_size = size };
}

static void assert_memory(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	if (usage.ru_maxrss > MEMORY_MAX)
		fail_msg("%ld KiB of memory were taken", usage.ru_maxrss);
}

static int no_name(void *user, const char *name)
{
	fail_msg("there is a section '%s'", name);
	return 0;
}

/* A file whose sections cannot be found is served all the same. */
static void assert_served_whole(int fd)
{
	struct bid_elf_section section;
	struct bid_elf_info info;
	bid_auto_file FILE *out = fopen("/dev/null", "we");

	assert_non_null(out);
	assert_int_equal(bid_elf_find_section(fd, ".text", &section), -ENOENT);
	assert_int_equal(bid_elf_each_section(fd, no_name, NULL), 0);
	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_int_equal(bid_elf_is_kernel(fd), 1);
	assert_int_equal(bid_elf_probes(fd, "/usr/bin/a", out), -ENODATA);
	assert_memory();
}

static void test_names_in_a_hole_take_no_memory(void **state)
{
	static const uint64_t sizes[] = { BID_LIMIT_NAMES, 4 * GIB, UINT64_C(1) << 40 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		Elf64_Shdr table = names_at(SYMBOLS, sizes[i]);
		bid_auto_fd int fd = make_kernel(&table, 1, 2, SYMBOLS + sizes[i]);

		assert_served_whole(fd);
	}
}

static void test_sections_beyond_the_limit_take_no_memory(void **state)
{
	static const uint64_t counts[] = { BID_LIMIT_SECTIONS + 1, 4 << 20, UINT64_C(1) << 33 };
	Elf64_Shdr table = names_at(NAMES, sizeof(names));

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		bid_auto_fd int fd = make_kernel(&table, 1, counts[i], SECTIONS + counts[i] * sizeof(table));

		assert_served_whole(fd);
	}
}

static void test_last_section_at_the_limit_is_found(void **state)
{
	Elf64_Shdr table = names_at(NAMES, sizeof(names));
	Elf64_Shdr last = { .sh_name = TEXT, .sh_type = SHT_PROGBITS, .sh_offset = NAMES, .sh_size = 7 };
	uint64_t end = SECTIONS + BID_LIMIT_SECTIONS * sizeof(table);
	bid_auto_fd int fd = make_kernel(&table, 1, BID_LIMIT_SECTIONS, end);
	struct bid_elf_section section;
	struct bid_elf_info info;

	put(fd, &last, sizeof(last), end - sizeof(last));
	assert_int_equal(bid_elf_find_section(fd, ".text", &section), 0);
	assert_int_equal(section.size, 7);
	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_memory();
}

/* Symbols of size @size at SYMBOLS, and as many bytes of names behind them. */
static int kallsyms_of(uint64_t size)
{
	Elf64_Shdr table[] = {
		names_at(NAMES, sizeof(names)),
		{ .sh_name = SYMTAB, .sh_type = SHT_SYMTAB, .sh_offset = SYMBOLS, .sh_size = size, .sh_link = 3, .sh_entsize = 24 },
		names_at(SYMBOLS + size, size),
	};
	bid_auto_fd int fd = make_kernel(table, 3, 4, SYMBOLS + 2 * size);
	bid_auto_free char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int r;

	assert_non_null(out);
	r = bid_elf_kallsyms(fd, out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(len, 0);
	assert_memory();
	return r;
}

static void test_symbols_in_a_hole_take_no_memory(void **state)
{
	assert_int_equal(kallsyms_of(24), -ENODATA);
	assert_int_equal(kallsyms_of(BID_LIMIT_SYMBOLS * UINT64_C(24)), -EBADMSG);
	assert_int_equal(kallsyms_of(16 * GIB / 24 * 24), -EBADMSG);
	assert_int_equal(kallsyms_of(UINT64_C(1) << 40), -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_in_a_hole_take_no_memory),
		cmocka_unit_test(test_sections_beyond_the_limit_take_no_memory),
		cmocka_unit_test(test_last_section_at_the_limit_is_found),
		cmocka_unit_test(test_symbols_in_a_hole_take_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
