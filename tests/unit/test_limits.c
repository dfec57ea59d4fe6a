// SPDX-License-Identifier: LGPL-2.1-or-later
/* A hostile store costs at most what store/base/limits.h allows. */
#include "store_fixture.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/content_key.h"
#include "api/remove.h"
#include "api/source_section.h"
#include "api/verify.h"
#include "base/cleanup.h"

enum { LARGE = 300 << 20 };

#define TABLE "store/[kernel.kallsyms]/" ID_A "/kallsyms"
#define LINE  "ffffffffc0000000 t a\\t[m]\\n"

static int modules_of_a(const struct store_fixture *fixture, char **ret_text)
{
	struct bid_id id = id_of(ID_A);
	struct stat table;

	return bid_store_modules(fixture->store, &id, ret_text, &table);
}

static long memory_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

static void test_hole_in_kallsyms_takes_no_memory(void **state)
{
	static const char *const tails[] = {
		"truncate -s 3G '" TABLE "'",
		"truncate -s 1T '" TABLE "'",
		"head -c 100000 /dev/zero | tr '\\0' x >> '" TABLE "'",
	};
	struct store_fixture *fixture = *state;
	bid_auto_free char *text = NULL;
	long before = memory_kib();

	run(fixture, "printf 'ffffffff81000000 T _text\\n" LINE "' > table");
	perf_adds(fixture, "table", "[kernel.kallsyms]", ID_A, "kallsyms");
	assert_int_equal(modules_of_a(fixture, &text), 0);
	assert_string_equal(text, "m 4096 0 - Live 0xffffffffc0000000\n");
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		bid_auto_free char *other = NULL;

		run(fixture, "cp table '" TABLE "' && %s", tails[i]);
		assert_int_equal(modules_of_a(fixture, &other), -ENOENT);
	}
	assert_true(memory_kib() - before < 32 << 10);
}

/* Lines are cut at any byte where the table is read piece by piece. */
static void test_modules_of_a_long_table_are_complete(void **state)
{
	struct store_fixture *fixture = *state;
	bid_auto_free char *text = NULL;
	size_t lines = 0;

	run(fixture, "awk 'BEGIN { for (i = 1; i <= 5000; i++) printf \"ffffffff%%05x000 t symbol_%%d\\t[module_%%d]\\n\", i, i, i "
		     "}' > table");
	perf_adds(fixture, "table", "[kernel.kallsyms]", ID_A, "kallsyms");
	assert_int_equal(modules_of_a(fixture, &text), 0);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 5000);
	assert_non_null(strstr(text, "module_5000 4096 0 - Live "));
}

static int open_section(struct bid_store *store, const char *id, const char *name, struct bid_file *ret_file)
{
	struct bid_artifact artifact = { .id = id_of(id), .kind = BID_KIND_SECTION };
	struct bid_subpath *subpath;
	int r;

	assert_int_equal(bid_subpath_section(name, &subpath), 0);
	artifact.subpath = subpath;
	r = bid_store_find(store, &artifact, BID_MAY_DERIVE, ret_file);
	bid_subpath_unref(subpath);
	return r;
}

/* "large": an ELF file with the id ID_A, and a section ".s" of 300 MiB in a hole. */
static void make_large_section(const struct store_fixture *fixture)
{
	static const char names[] = "\0.s";
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		Elf64_Nhdr note;
		char owner[4];
		uint8_t id[20];
		char names[4];
		Elf64_Shdr sections[3];
	} file = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 __BYTE_ORDER == __BIG_ENDIAN ? ELFDATA2MSB : ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_version = EV_CURRENT,
			    .e_phoff = offsetof(__typeof__(file), segment),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1,
			    .e_shoff = offsetof(__typeof__(file), sections),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 1 },
		.segment = { .p_type = PT_NOTE, .p_offset = offsetof(__typeof__(file), note), .p_filesz = 36, .p_align = 4 },
		.note = { 4, 20, NT_GNU_BUILD_ID },
		.owner = "GNU",
		.sections = { { 0 },
			      { .sh_type = SHT_STRTAB, .sh_offset = offsetof(__typeof__(file), names), .sh_size = sizeof(names) },
			      { .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = 4096, .sh_size = LARGE } },
	};
	bid_auto_fd int fd = -1;
	char path[96];

	memset(file.id, 0xaa, sizeof(file.id));
	memcpy(file.names, names, sizeof(file.names));
	snprintf(path, sizeof(path), "%s/large", fixture->directory);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0 && write(fd, &file, sizeof(file)) == sizeof(file) && ftruncate(fd, 4096 + LARGE) == 0);
}

static void test_memory_of_sections_is_limited_in_sum(void **state)
{
	struct bid_file first = BID_FILE_NONE, second = BID_FILE_NONE;
	struct store_fixture *fixture = *state;
	struct bid_store *store;
	char path[96];
	int copy;

	make_large_section(fixture);
	perf_adds(fixture, "large", "usr/bin/a", ID_A, "elf");
	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, 0, &store), 0);
	assert_int_equal(open_section(store, ID_A, ".s", &first), 0);
	assert_int_equal(first.st.st_size, LARGE);
	/* a copy of the descriptor has it open as well */
	copy = dup(first.fd);
	assert_true(copy >= 0);
	bid_file_release(&first);
	assert_int_equal(open_section(store, ID_A, ".s", &second), -ENOMEM);
	close(copy);
	assert_int_equal(open_section(store, ID_A, ".s", &second), 0);
	bid_file_release(&second);
	bid_store_free(store);
}

/* @depth directories below each other, below @path. */
static void make_deep(const struct store_fixture *fixture, const char *path, unsigned depth)
{
	bid_auto_fd int dir = -1;
	char whole[256];

	run(fixture, "mkdir -p %s", path);
	snprintf(whole, sizeof(whole), "%s/%s", fixture->directory, path);
	dir = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < depth; i++) {
		int next;

		assert_int_equal(mkdirat(dir, "d", 0755), 0);
		next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(dir);
		dir = next;
	}
}

static int no_artifact(void *user, const struct bid_artifact *artifact)
{
	fail_msg("there is a source");
	return 0;
}

static int count_artifact(void *user, const struct bid_artifact *artifact)
{
	++*(unsigned *)user;
	return 0;
}

static int no_content_key(void *user, const struct bid_content_key *key)
{
	fail_msg("there is a content key");
	return 0;
}

static void test_deep_directories_are_not_walked(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_verify_config config = { 0 };
	struct bid_verify_stats stats;
	struct bid_removal removal = { .id = id_of(ID_A) };
	struct bid_id id = id_of(ID_A);
	struct timespec changed;
	char *info;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	make_deep(fixture, "store/.bidfs/source/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 1950);
	make_deep(fixture, "store/.bidfs/content-key", 1950);
	assert_int_equal(bid_store_each_source_section(fixture->store, &id, BID_KIND_SOURCE, no_artifact, NULL), 0);
	assert_int_equal(bid_store_each_content_key(fixture->store, no_content_key, NULL), 0);
	assert_int_equal(bid_store_info(fixture->store, &id, &info, &changed), 0);
	free(info);
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.left, 0);
	assert_int_equal(bid_store_remove(fixture->store, &removal, 1), 0);
	assert_int_equal(removal.error, 0);
}

/* The deepest source that has a name is listed. */
static void test_source_as_deep_as_may_be_is_listed(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_id id = id_of(ID_A);
	unsigned found = 0;

	make_deep(fixture, "store/.bidfs/source/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", BID_SUBPATH_DEPTH - 1);
	run(fixture, "d=$(find store/.bidfs/source -type d | tail -n 1) && touch $d/a.c");
	assert_int_equal(bid_store_each_source_section(fixture->store, &id, BID_KIND_SOURCE, count_artifact, &found), 0);
	assert_int_equal(found, 1);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	static const struct CMUnitTest tests[] = {
		TEST(test_hole_in_kallsyms_takes_no_memory),	 TEST(test_modules_of_a_long_table_are_complete),
		TEST(test_memory_of_sections_is_limited_in_sum), TEST(test_deep_directories_are_not_walked),
		TEST(test_source_as_deep_as_may_be_is_listed),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
