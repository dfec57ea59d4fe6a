// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sections by name, and the debug link. */
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "elf_fixture.h"

static int count_section(void *user, const char *name)
{
	unsigned *seen = user;

	*seen += strcmp(name, "extra") == 0;
	return strcmp(name, ".bss") == 0 ? 1 : 0;
}

static void test_section_is_read_by_name(void **state)
{
	static const char content[] = "the bytes of a section";
	bid_auto_fd int with = -1, source = -1;
	struct bid_elf_section section;
	char read[sizeof(content)];
	unsigned seen = 0;

	elf_fixture_write("content", content, sizeof(content));
	RUN("objcopy", "--add-section", "extra=content", "program", "with-section");
	with = elf_fixture_open("with-section");
	assert_int_equal(bid_elf_find_section(with, "extra", &section), 0);
	assert_int_equal(section.size, sizeof(content));
	assert_int_equal(pread(with, read, sizeof(read), (off_t)section.offset), sizeof(read));
	assert_string_equal(read, content);

	/* has a size, but no bytes */
	assert_int_equal(bid_elf_find_section(with, ".bss", &section), -ENOENT);
	assert_int_equal(bid_elf_find_section(with, ".none", &section), -ENOENT);
	assert_int_equal(bid_elf_find_section(with, "", &section), -ENOENT);
	assert_int_equal(bid_elf_each_section(with, count_section, &seen), 0);
	assert_int_equal(seen, 1);

	source = elf_fixture_open("program.c");
	assert_int_equal(bid_elf_find_section(source, ".text", &section), -ENOEXEC);
	assert_int_equal(bid_elf_each_section(source, count_section, &seen), -ENOEXEC);
}

/* No linker compresses the table of the names, but eu-elfcompress(1) can. */
static void test_file_with_compressed_names_has_no_sections(void **state)
{
	bid_auto_fd int fd = -1;
	struct bid_elf_section section;
	struct bid_elf_info info;

	RUN("eu-elfcompress", "-f", "--name=.shstrtab", "-o", "compressed", "program");
	fd = elf_fixture_open("compressed");
	assert_int_equal(bid_elf_find_section(fd, ".text", &section), -ENOENT);
	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_true(info.has_code && info.has_symtab);
}

static void check_debuglink(const char *name, const char *linked, uint32_t crc)
{
	bid_auto_fd int fd = elf_fixture_open(name);
	struct bid_elf_debuglink link;

	assert_int_equal(bid_elf_debuglink(fd, &link), 0);
	assert_string_equal(link.name, linked);
	assert_int_equal(link.crc, crc);
}

static void test_debug_link_has_name_and_crc(void **state)
{
	static const char debug[] = "123456789"; /* the standard check input of a CRC-32 */
	bid_auto_fd int fd = elf_fixture_memory(debug, strlen(debug)), without = elf_fixture_open("program");
	bid_auto_free char *data = NULL;
	struct bid_elf_debuglink link;
	uint32_t crc;
	size_t len;
	char *at;

	assert_int_equal(bid_elf_checksum(fd, &crc), 0);
	assert_int_equal(crc, 0xcbf43926);
	elf_fixture_write("a.debug", debug, strlen(debug));
	elf_fixture_write("ab.debug", debug, strlen(debug));
	RUN("objcopy", "--add-gnu-debuglink=a.debug", "program", "linked");
	check_debuglink("linked", "a.debug", crc);
	RUN("objcopy", "-I", "binary", "-O", "elf32-big", "a.debug", "big");
	RUN("objcopy", "-I", "elf32-big", "-O", "elf32-big", "--add-gnu-debuglink=ab.debug", "big", "big-linked");
	check_debuglink("big-linked", "ab.debug", crc);

	assert_int_equal(bid_elf_debuglink(without, &link), -ENOENT);
	assert_int_equal(bid_elf_debuglink(fd, &link), -ENOEXEC);
	/* a link that must not be followed elsewhere */
	elf_fixture_read("linked", &data, &len);
	at = memmem(data, len, "a.debug", sizeof("a.debug"));
	assert_non_null(at);
	at[1] = '/';
	bid_close(fd);
	fd = elf_fixture_memory(data, len);
	assert_int_equal(bid_elf_debuglink(fd, &link), -ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_section_is_read_by_name),
		cmocka_unit_test(test_file_with_compressed_names_has_no_sections),
		cmocka_unit_test(test_debug_link_has_name_and_crc),
	};

	return cmocka_run_group_tests(tests, elf_fixture_enter, elf_fixture_leave);
}
