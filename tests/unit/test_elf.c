// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * store/elf on files built here by the tools of this system. The linker gets the ids, so that no other reader has to be trusted.
 */
#include "elf_fixture.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"

#define ID     ELF_FIXTURE_ID
#define ALT_ID "00ff7e57a17e57a17e57a17e57a17e57a17e57ff"

static void assert_id(const struct bid_id *id, const char *hex)
{
	char is[BID_ID_HEX_MAX];

	assert_string_equal(bid_id_format(id, is), hex);
}

/* Both readers and the reader of heads return @hex, without moving the offset. */
static void check_id(const char *name, const char *hex)
{
	bid_auto_fd int fd = elf_fixture_open(name);
	bid_auto_free char *data = NULL;
	struct bid_elf_info info;
	struct bid_id id;
	size_t len;
	int r;

	assert_int_equal(lseek(fd, 3, SEEK_SET), 3);
	assert_int_equal(bid_elf_build_id(fd, &id), 0);
	assert_id(&id, hex);
	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_id(&info.id, hex);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 3);

	elf_fixture_read(name, &data, &len);
	r = bid_elf_build_id_in(data, len, &id);
	if (r == 0)
		assert_id(&id, hex);
	else /* a stale segment may lie behind the end, for which the head does not know it is the end */
		assert_true(r == -EAGAIN && strstr(name, "debug"));
}

enum elf_content { DWARF = 1, SYMTAB = 2, CODE = 4 };

static void check_content(const char *name, int content, const char *alt)
{
	bid_auto_fd int fd = elf_fixture_open(name);
	struct bid_elf_info info;

	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_int_equal((info.has_dwarf ? DWARF : 0) | (info.has_symtab ? SYMTAB : 0) | (info.has_code ? CODE : 0), content);
	assert_id(&info.alt, alt);
}

static void test_linked_programs_have_their_id(void **state)
{
	check_id("program", ID);
	check_content("program", DWARF | SYMTAB | CODE, "");
	RUN("strip", "-o", "stripped", "program");
	check_id("stripped", ID);
	check_content("stripped", CODE, "");
	RUN("strip", "-g", "-o", "symbols", "program");
	check_content("symbols", SYMTAB | CODE, "");
	RUN("objcopy", "--compress-debug-sections=zlib-gnu", "program", "zdebug");
	check_content("zdebug", DWARF | SYMTAB | CODE, "");
}

/* Has the ELF file @data 64 bits, in the byte order of this machine? The compiler may be of another one. */
static bool is_read_as_it_is(const char *data)
{
	return data[EI_CLASS] == ELFCLASS64 && data[EI_DATA] == (htole16(1) == 1 ? ELFDATA2LSB : ELFDATA2MSB);
}

static void test_separate_debug_files_have_stale_segments(void **state)
{
	bid_auto_free char *data = NULL;
	const Elf64_Ehdr *header;
	const Elf64_Phdr *segments;
	const Elf64_Shdr *sections;
	size_t len, n_stale = 0;

	RUN("objcopy", "--only-keep-debug", "program", "program.debug");
	check_id("program.debug", ID);
	check_content("program.debug", DWARF | SYMTAB, "");
	RUN("eu-strip", "-f", "program.eu-debug", "-o", "eu-stripped", "program");
	check_id("program.eu-debug", ID);
	check_content("program.eu-debug", DWARF | SYMTAB, "");
	check_id("eu-stripped", ID);
	check_content("eu-stripped", CODE, "");

	elf_fixture_read("program.eu-debug", &data, &len);
	if (!is_read_as_it_is(data))
		return;
	/* the tested case: a segment of notes outside all sections of notes */
	header = (const void *)data;
	segments = (const void *)(data + header->e_phoff);
	sections = (const void *)(data + header->e_shoff);
	for (size_t i = 0; i < header->e_phnum; i++) {
		bool stale = segments[i].p_type == PT_NOTE;

		for (size_t j = 1; j < header->e_shnum; j++)
			if (sections[j].sh_type == SHT_NOTE && sections[j].sh_offset == segments[i].p_offset)
				stale = false;
		n_stale += stale;
	}
	assert_int_not_equal(n_stale, 0);
}

static void test_debug_file_with_one_section_of_dwarf_has_dwarf(void **state)
{
	RUN("objcopy", "--only-keep-debug", "program", "whole.debug");
	RUN("objcopy", "-j", ".note.gnu.build-id", "-j", ".debug_line", "-S", "--keep-section=.debug_line", "whole.debug",
	    "line.debug");
	check_content("line.debug", DWARF, "");
	RUN("strip", "-o", "program.stripped", "program");
	RUN("objcopy", "--only-keep-debug", "program.stripped", "empty.debug");
	check_content("empty.debug", 0, "");
}

static bool is_skeleton(const char *name)
{
	bid_auto_fd int fd = elf_fixture_open(name);
	struct bid_elf_info info;

	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_true(info.has_dwarf);
	return bid_elf_is_skeleton(fd);
}

/* Copy the program "split" to "marked", with its .debug_info marked as compressed; the bytes stay. False for another machine. */
static bool mark_compressed(void)
{
	bid_auto_free char *data = NULL;
	const Elf64_Ehdr *header;
	Elf64_Shdr *sections;
	const char *names;
	size_t len, marked = 0;

	elf_fixture_read("split", &data, &len);
	if (!is_read_as_it_is(data))
		return false;
	header = (const void *)data;
	sections = (void *)(data + header->e_shoff);
	names = data + sections[header->e_shstrndx].sh_offset;
	for (size_t i = 1; i < header->e_shnum; i++)
		if (strcmp(names + sections[i].sh_name, ".debug_info") == 0) {
			sections[i].sh_flags |= SHF_COMPRESSED;
			marked++;
		}
	assert_int_equal(marked, 1);
	elf_fixture_write("marked", data, len);
	return true;
}

static void test_split_dwarf_leaves_a_skeleton(void **state)
{
	static const char source[] = "int main(void) { return 0; }\n", *const versions[] = { "-gdwarf-4", "-gdwarf-5" };

	elf_fixture_write("split.c", source, strlen(source));
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		RUN("gcc", versions[i], "-gsplit-dwarf", "-o", "split", "split.c");
		assert_true(is_skeleton("split"));
		assert_false(mark_compressed() && is_skeleton("marked"));
		RUN("objcopy", "--only-keep-debug", "split", "split.debug");
		assert_true(is_skeleton("split.debug"));
		RUN("gcc", versions[i], "-o", "whole", "split.c");
		assert_false(is_skeleton("whole"));
	}
}

static void test_modules_have_their_id(void **state)
{
	check_id("module.ko", ID);
	check_content("module.ko", DWARF | SYMTAB | CODE, "");
	RUN("objcopy", "--only-keep-debug", "module.ko", "module.debug");
	check_id("module.debug", ID);
	check_content("module.debug", DWARF | SYMTAB, "");
	RUN("strip", "-g", "-o", "module.stripped", "module.ko");
	check_content("module.stripped", SYMTAB | CODE, "");
}

static void test_32_bit_files_have_their_id(void **state)
{
	static const char source[] = ".globl _start\n.text\n_start: ret\n";

	elf_fixture_write("small.s", source, strlen(source));
	RUN("as", "--32", "-g", "-o", "small.o", "small.s");
	RUN("ld", "-m", "elf_i386", "--build-id=0x" ID, "-o", "small", "small.o");
	check_id("small", ID);
	check_content("small", DWARF | SYMTAB | CODE, "");
	RUN("objcopy", "--only-keep-debug", "small", "small.debug");
	check_id("small.debug", ID);
	check_content("small.debug", DWARF | SYMTAB, "");
	RUN("ld", "-m", "elf_i386", "-r", "--build-id=0x" ID, "-o", "small.ko", "small.o");
	check_id("small.ko", ID);
}

/* An id of odd length, the last in its section: the linker's padding is outside the section. */
static void test_id_of_odd_length_is_read(void **state)
{
	RUN("cc", "-Wl,--build-id=0xabcdef", "-o", "odd", "program.c");
	check_id("odd", "abcdef");
	RUN("ld", "-r", "--build-id=0xabcdef", "-o", "odd.ko", "module.o");
	check_id("odd.ko", "abcdef");
}

static void test_file_without_id_is_enodata(void **state)
{
	bid_auto_fd int fd = -1;
	struct bid_elf_info info;
	struct bid_id id;

	RUN("cc", "-Wl,--build-id=none", "-o", "without", "program.c");
	fd = elf_fixture_open("without");
	assert_int_equal(bid_elf_build_id(fd, &id), -ENODATA);
	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_int_equal(info.id.len, 0);
	assert_true(info.has_code);
}

static void test_altlink_names_the_dwz_file(void **state)
{
	uint8_t link[12 + 20] = "common.dwz";
	struct bid_id id;

	assert_int_equal(bid_id_parse_str(ALT_ID, &id), 0);
	memcpy(link + strlen("common.dwz") + 1, id.bytes, id.len);
	elf_fixture_write("altlink", link, strlen("common.dwz") + 1 + id.len);
	RUN("objcopy", "--add-section", ".gnu_debugaltlink=altlink", "program", "with-altlink");
	check_id("with-altlink", ID);
	check_content("with-altlink", DWARF | SYMTAB | CODE, ALT_ID);
}

/* More sections than e_shnum can say: gABI, "ELF Header". */
static void test_more_than_65535_sections_are_read(void **state)
{
	bid_auto_file FILE *source = fopen("many.s", "we");
	bid_auto_fd int fd = -1;
	Elf64_Ehdr header;

	assert_non_null(source);
	for (int i = 0; i < SHN_LORESERVE; i++)
		fprintf(source, ".section .data.%d,\"aw\"\n.byte 0\n", i);
	assert_int_equal(fflush(source), 0);
	RUN("as", "-o", "many.o", "many.s");
	RUN("ld", "-r", "--unique", "--build-id=0x" ID, "-o", "many.ko", "many.o");

	fd = elf_fixture_open("many.ko");
	assert_int_equal(bid_pread_full(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(header.e_shnum, 0);
	check_id("many.ko", ID);
}

/* The notes are not in the first 4 KiB. */
static void test_distant_notes_are_read(void **state)
{
	static const char note[] = "\4\0\0\0\3\0\0\0\3\0\0\0GNU\0\xfa\xaa\xaa\0";
	bid_auto_free char *data = NULL;
	Elf64_Phdr *segments;
	size_t len, far;
	int notes = 0;

	if (sizeof(void *) != 8 || htole16(1) != 1) {
		print_message("it makes a file of 64 bits in this machine's order, little-endian\n");
		skip();
	}
	elf_fixture_read("program", &data, &len);
	far = (len + 7) & ~(size_t)7;
	data = realloc(data, far + sizeof(note));
	assert_non_null(data);
	assert_true(far > 4096);
	memset(data + len, 0, far - len);
	memcpy(data + far, note, sizeof(note) - 1);
	segments = (void *)(data + ((Elf64_Ehdr *)data)->e_phoff);
	for (size_t i = 0; i < ((Elf64_Ehdr *)data)->e_phnum; i++) {
		if (segments[i].p_type != PT_NOTE)
			continue;
		segments[i].p_offset = far;
		segments[i].p_filesz = sizeof(note) - 1;
		segments[i].p_align = 4;
		notes++;
	}
	assert_true(notes > 0);

	bid_auto_fd int fd = elf_fixture_memory(data, far + sizeof(note) - 1);
	struct bid_id id;

	assert_int_equal(bid_elf_build_id(fd, &id), 0);
	assert_id(&id, "faaaaa");
	assert_int_equal(bid_elf_build_id_in(data, 4096, &id), -EAGAIN);
	/* bytes of a segment are missing: the section headers decide */
	assert_int_equal(ftruncate(fd, (off_t)far + 10), 0);
	assert_int_equal(bid_elf_build_id(fd, &id), 0);
	assert_id(&id, ID);
}

/* Every prefix gives the file's id or none. */
static void test_head_gives_the_files_id_or_none(void **state)
{
	static const char *const names[] = { "program", "module.ko" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bid_auto_free char *data = NULL;
		size_t len, told = 0;
		struct bid_id id;

		elf_fixture_read(names[i], &data, &len);
		for (size_t n = 0; n <= len; n++) {
			int r = bid_elf_build_id_in(data, n, &id);

			if (r == 0) {
				assert_id(&id, ID);
				told++;
			} else {
				assert_int_equal(r, -EAGAIN);
				assert_int_equal(told, 0);
			}
		}
		assert_true(told > 0);
		/* the id of a linked file is in its last note; a relocatable one has its section headers at its end */
		if (i == 0)
			assert_true(told > 1);
	}
	assert_int_equal(bid_elf_build_id_in("#!/bin/sh\n", 10, &(struct bid_id){ 0 }), -ENOEXEC);
	assert_int_equal(bid_elf_build_id_in("#", 1, &(struct bid_id){ 0 }), -ENOEXEC);
}

/* Every truncation is detected. */
static void test_every_truncation_is_detected(void **state)
{
	static const char *const names[] = { "program", "program.debug", "program.eu-debug", "module.ko", "small", "small.debug" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bid_auto_free char *data = NULL;
		bid_auto_fd int fd = -1;
		size_t len, step;

		elf_fixture_read(names[i], &data, &len);
		fd = elf_fixture_memory(data, len);
		step = len / 500 + 1;
		for (size_t n = len - 1; n < len; n -= step) {
			struct bid_elf_info info;
			int r;

			assert_int_equal(ftruncate(fd, (off_t)n), 0);
			r = bid_elf_examine(fd, &info);
			if (r != -EBADMSG && (r != -ENOEXEC || n >= sizeof(Elf64_Ehdr)))
				fail_msg("'%s' cut to %zu of %zu bytes: %d", names[i], n, len, r);
		}
	}
}

/* A hole where the section headers say there are bytes behind the end. */
static void test_section_outside_the_file_is_damage(void **state)
{
	bid_auto_free char *data = NULL;
	Elf64_Shdr *sections;
	size_t len, tried = 0;

	elf_fixture_read("program", &data, &len);
	if (!is_read_as_it_is(data)) {
		print_message("it changes a file of 64 bits in the order of this machine\n");
		skip();
	}
	sections = (void *)(data + ((Elf64_Ehdr *)data)->e_shoff);
	for (size_t i = 1; i < ((Elf64_Ehdr *)data)->e_shnum; i++) {
		Elf64_Shdr before = sections[i];

		if (before.sh_type == SHT_NOBITS || before.sh_size == 0)
			continue;
		for (int what = 0; what < 2; what++) {
			bid_auto_fd int fd = -1;
			struct bid_elf_info info;

			if (what == 0)
				sections[i].sh_offset = len - before.sh_size + 1;
			else
				sections[i].sh_size = UINT64_MAX - before.sh_offset + 1;
			fd = elf_fixture_memory(data, len);
			assert_int_equal(bid_elf_examine(fd, &info), -EBADMSG);
			sections[i] = before;
			tried++;
		}
	}
	assert_true(tried > 20);
}

static void test_other_files_are_errors(void **state)
{
	bid_auto_fd int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bid_auto_fd int unreadable = open("program", O_WRONLY | O_CLOEXEC);
	struct bid_elf_info info;
	struct bid_id id;

	assert_true(directory >= 0 && unreadable >= 0);
	assert_int_equal(bid_elf_build_id(directory, &id), -EISDIR);
	assert_int_equal(bid_elf_examine(directory, &info), -EISDIR);
	assert_int_equal(bid_elf_unpack(directory, 1, NULL, NULL), -EISDIR);
	assert_int_equal(bid_elf_build_id(unreadable, &id), -EBADF);
	assert_int_equal(bid_elf_examine(unreadable, &info), -EBADF);
	assert_int_equal(bid_elf_unpack(unreadable, 1, NULL, NULL), -EBADF);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linked_programs_have_their_id),
		cmocka_unit_test(test_separate_debug_files_have_stale_segments),
		cmocka_unit_test(test_debug_file_with_one_section_of_dwarf_has_dwarf),
		cmocka_unit_test(test_split_dwarf_leaves_a_skeleton),
		cmocka_unit_test(test_modules_have_their_id),
		cmocka_unit_test(test_32_bit_files_have_their_id),
		cmocka_unit_test(test_id_of_odd_length_is_read),
		cmocka_unit_test(test_file_without_id_is_enodata),
		cmocka_unit_test(test_altlink_names_the_dwz_file),
		cmocka_unit_test(test_more_than_65535_sections_are_read),
		cmocka_unit_test(test_distant_notes_are_read),
		cmocka_unit_test(test_head_gives_the_files_id_or_none),
		cmocka_unit_test(test_every_truncation_is_detected),
		cmocka_unit_test(test_section_outside_the_file_is_damage),
		cmocka_unit_test(test_other_files_are_errors),
	};

	return cmocka_run_group_tests(tests, elf_fixture_enter, elf_fixture_leave);
}
