// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files made to be slow, or to need much memory: the maximum of sections, each of little cost. Each file takes a moment if the work
 * grows with its size. Faster growth takes minutes to hours, and meets the time limit.
 */
#include "elf_fixture.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"

enum { MANY = BID_LIMIT_SECTIONS - 3, LONG_TABLE = BID_LIMIT_NAMES };

static const struct {
	Elf64_Nhdr head;
	char owner[4];
	uint8_t id[20];
} build_id = { { 4, 20, NT_GNU_BUILD_ID }, "GNU", { 1, 2, 3 } };

static void put(int fd, const void *data, size_t len, uint64_t offset)
{
	assert_int_equal(bid_pwrite_full(fd, data, len, (off_t)offset), 0);
}

static Elf64_Ehdr header_of(uint64_t sections)
{
	return (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			     __BYTE_ORDER == __BIG_ENDIAN ? ELFDATA2MSB : ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shoff = sections,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shstrndx = 1,
	};
}

/* A file with @n sections like @each, which are @step apart, a table of names with @names, and its id in the last section. */
static int many_sections(size_t n, Elf64_Shdr each, uint64_t step, const char *names, size_t names_len)
{
	uint64_t names_at = sizeof(Elf64_Ehdr), id_at = names_at + names_len, data_at = id_at + sizeof(build_id);
	uint64_t sections = data_at + n * step + each.sh_size;
	bid_auto_free Elf64_Shdr *table = calloc(n + 3, sizeof(*table));
	Elf64_Ehdr header = header_of(sections);
	int fd = elf_fixture_memory("", 0);

	assert_non_null(table);
	table[0].sh_size = n + 3;
	table[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = names_len };
	for (size_t i = 0; i < n; i++) {
		table[i + 2] = each;
		table[i + 2].sh_offset = data_at + i * step;
	}
	table[n + 2] = (Elf64_Shdr){ .sh_type = SHT_NOTE, .sh_offset = id_at, .sh_size = sizeof(build_id), .sh_addralign = 4 };
	put(fd, &header, sizeof(header), 0);
	put(fd, names, names_len, names_at);
	put(fd, &build_id, sizeof(build_id), id_at);
	put(fd, table, (n + 3) * sizeof(*table), sections);
	return fd;
}

static int count_name(void *user, const char *name)
{
	++*(size_t *)user;
	assert_true(strlen(name) <= NAME_MAX);
	return 0;
}

/* A long text without an end behind a name: each search for the end of the name reads all of the text. */
static void test_endless_names_take_linear_time(void **state)
{
	bid_auto_free char *names = malloc(LONG_TABLE);
	bid_auto_fd int fd = -1;
	struct bid_elf_section section;
	struct bid_elf_info info;
	size_t n = 0;

	assert_non_null(names);
	memset(names, 'x', LONG_TABLE);
	memcpy(names, "\0.a", sizeof("\0.a"));
	fd = many_sections(MANY, (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_size = 4 }, 0, names, LONG_TABLE);
	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_memory_equal(info.id.bytes, build_id.id, sizeof(build_id.id));
	assert_int_equal(bid_elf_find_section(fd, ".b", &section), -ENOENT);
	assert_int_equal(bid_elf_each_section(fd, count_name, &n), 0);
	assert_int_equal(n, MANY + 2);
}

/* One name of maximal length, which a list would copy once per section. */
static void test_long_name_takes_no_copies(void **state)
{
	bid_auto_free char *names = malloc(LONG_TABLE);
	bid_auto_fd int fd = -1;
	size_t n = 0;

	assert_non_null(names);
	memset(names, 'x', LONG_TABLE);
	names[0] = names[LONG_TABLE - 1] = '\0';
	fd = many_sections(MANY, (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_size = 4 }, 0, names, LONG_TABLE);
	assert_int_equal(bid_elf_each_section(fd, count_name, &n), 0);
	assert_int_equal(n, 2);
}

/* An unstripped file would get a copy of the name of each section that only the ELF file has. */
static void test_long_names_are_not_put_together(void **state)
{
	Elf64_Shdr each = { .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_size = 4 };
	bid_auto_free char *names = malloc(LONG_TABLE);
	bid_auto_fd int merged = elf_fixture_memory("", 0), elf = -1, debug = -1;

	assert_non_null(names);
	memset(names, 'x', LONG_TABLE);
	names[0] = names[LONG_TABLE - 1] = '\0';
	elf = many_sections(200, each, 0, names, LONG_TABLE);
	debug = many_sections(1, each, 0, "", 1);
	assert_int_equal(bid_elf_unstrip(elf, debug, UINT64_MAX, merged), -EBADMSG);
	bid_close(debug);
	/* each name here is compared with each name there */
	debug = many_sections(MANY, each, 0, names, LONG_TABLE);
	assert_int_equal(bid_elf_unstrip(elf, debug, UINT64_MAX, merged), -EBADMSG);
}

/* Each has its own range of notes, all zeros: notes without name and contents. */
static void test_notes_in_every_section_take_linear_time(void **state)
{
	Elf64_Shdr each = { .sh_type = SHT_NOTE, .sh_size = 12, .sh_addralign = 4 };
	bid_auto_fd int fd = many_sections(MANY, each, 12, "", 1);
	struct bid_elf_info info;
	struct bid_id id;

	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_int_equal(bid_elf_build_id(fd, &id), 0);
	assert_true(bid_id_equal(&id, &info.id));
	assert_memory_equal(id.bytes, build_id.id, sizeof(build_id.id));
}

/* More sections than any file has, all of them in a hole. */
static void test_sections_in_a_hole_take_linear_time(void **state)
{
	bid_auto_fd int fd = elf_fixture_memory("", 0);
	Elf64_Ehdr header = header_of(4096);
	Elf64_Shdr first = { .sh_size = UINT64_C(1) << 30 };
	struct bid_elf_section section;
	struct bid_elf_info info;
	struct bid_id id;

	put(fd, &header, sizeof(header), 0);
	put(fd, &first, sizeof(first), 4096);
	assert_int_equal(ftruncate(fd, INT64_C(1) << 40), 0);
	/* a part beyond the limits is no damage */
	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_int_equal(info.id.len, 0);
	assert_int_equal(bid_elf_build_id(fd, &id), -ENODATA);
	assert_int_equal(bid_elf_find_section(fd, ".text", &section), -ENOENT);
}

/* A comparison and a checksum pass over the zeros of a hole. */
static void test_hole_is_compared_and_summed_up_at_once(void **state)
{
	const off_t large = (off_t)1 << 50;
	bid_auto_fd int one = elf_fixture_memory("a", 1), other = elf_fixture_memory("a", 1), written = elf_fixture_memory("a", 1);
	bid_auto_free char *zeros = calloc(1, 3 << 20);
	uint32_t crc, wanted;

	assert_non_null(zeros);
	put(one, "b", 1, (3 << 20) + 1);
	put(written, zeros, 3 << 20, 1);
	put(written, "b", 1, (3 << 20) + 1);
	assert_int_equal(bid_same_bytes(one, written), 1);
	assert_int_equal(bid_elf_checksum(written, &wanted), 0);
	assert_int_equal(bid_elf_checksum(one, &crc), 0);
	assert_int_equal(crc, wanted);

	assert_int_equal(ftruncate(one, large), 0);
	assert_int_equal(ftruncate(other, large), 0);
	assert_int_equal(bid_same_bytes(one, other), 0);
	put(other, "b", 1, (3 << 20) + 1);
	assert_int_equal(bid_same_bytes(one, other), 1);
	put(other, "c", 1, (uint64_t)large - 1);
	assert_int_equal(bid_same_bytes(one, other), 0);
	assert_int_equal(bid_elf_checksum(other, &crc), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_endless_names_take_linear_time),
		cmocka_unit_test(test_long_name_takes_no_copies),
		cmocka_unit_test(test_long_names_are_not_put_together),
		cmocka_unit_test(test_notes_in_every_section_take_linear_time),
		cmocka_unit_test(test_sections_in_a_hole_take_linear_time),
		cmocka_unit_test(test_hole_is_compared_and_summed_up_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
