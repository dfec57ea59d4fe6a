// SPDX-License-Identifier: LGPL-2.1-or-later
/* store/elf on the hand-made files of tests/fuzz/corpus/note: byte orders, damage, and rare output of linkers. */
#include "elf_fixture.h"

#include <errno.h>
#include <limits.h>

#include "api/elf.h"
#include "base/cleanup.h"

#define SHA1 "101112131415161718191a1b1c1d1e1f20212223"

static void assert_id(const struct bid_id *id, const char *hex)
{
	char is[BID_ID_HEX_MAX];

	assert_string_equal(bid_id_format(id, is), hex);
}

/* Expectation of make_note.py: the id, or NULL, and the errors of bid_elf_build_id() and bid_elf_examine(). */
static const struct {
	const char *name, *id;
	int error, examined_error;
} corpus[] = {
	{ "linked-64le", SHA1, 0, 0 },
	{ "linked-64be", SHA1, 0, 0 },
	{ "linked-32le", SHA1, 0, 0 },
	{ "linked-32be", SHA1, 0, 0 },
	{ "segments-64be", SHA1, 0, 0 },
	{ "segments-32le", SHA1, 0, 0 },
	{ "sections-64le", SHA1, 0, 0 },
	{ "sections-32be", SHA1, 0, 0 },
	{ "stale-64le", SHA1, 0, 0 },
	{ "stale-32le", SHA1, 0, 0 },
	{ "stale-past-end", SHA1, 0, 0 },
	{ "several-align4", SHA1, 0, 0 },
	{ "several-align8", SHA1, 0, 0 },
	{ "two-ids", SHA1, 0, 0 },
	{ "bad-note-behind-segments", SHA1, 0, 0 },
	{ "bad-note-behind-sections", SHA1, 0, 0 },
	{ "hidden-note", NULL, -ENODATA, 0 },
	{ "sections-without-id", SHA1, 0, 0 },
	{ "no-note-sections", NULL, -ENODATA, 0 },
	{ "extended-64", SHA1, 0, 0 },
	{ "extended-32", SHA1, 0, 0 },
	{ "extended-sections", SHA1, 0, 0 },
	{ "sections-at-0", NULL, -ENODATA, 0 },
	{ "core", NULL, -ENODATA, 0 },
	{ "id-0", NULL, -ENODATA, 0 },
	{ "id-1", "ab", 0, 0 },
	{ "id-6", "101112131415", 0, 0 },
	{ "id-8", "1011121314151617", 0, 0 },
	{ "id-65", NULL, -ENODATA, 0 },
	{ "altlink", SHA1, 0, 0 },
	{ "cut-ident", NULL, -ENOEXEC, -ENOEXEC },
	{ "cut-header", NULL, -ENOEXEC, -ENOEXEC },
	{ "cut-segments", NULL, -ENODATA, -EBADMSG },
	{ "cut-note", NULL, -ENODATA, -EBADMSG },
	{ "cut-sections", SHA1, 0, -EBADMSG },
	{ "class-0", NULL, -ENOEXEC, -ENOEXEC },
	{ "data-3", NULL, -ENOEXEC, -ENOEXEC },
	{ "odd-phentsize", SHA1, 0, -EBADMSG },
	{ "odd-shentsize", SHA1, 0, -EBADMSG },
	{ "phoff-wraps", SHA1, 0, -EBADMSG },
	{ "shoff-wraps", SHA1, 0, -EBADMSG },
	{ "count-past-end", SHA1, 0, -EBADMSG },
	{ "count-of-35-bits", SHA1, 0, -EBADMSG },
	{ "empty", NULL, -ENOEXEC, -ENOEXEC },
	{ "magic", NULL, -ENOEXEC, -ENOEXEC },
};

static int open_corpus(const char *name)
{
	const char *root = getenv("BID_SOURCE_ROOT");
	char path[PATH_MAX];

	if (!root)
		fail_msg("BID_SOURCE_ROOT is not set");
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/note/%s", root, name);
	return elf_fixture_open(path);
}

static void test_corpus_has_its_ids(void **state)
{
	for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++) {
		bid_auto_fd int fd = open_corpus(corpus[i].name);
		struct bid_elf_info info = { 0 };
		struct bid_id id = { 0 };
		int identified, examined;

		identified = bid_elf_build_id(fd, &id);
		examined = bid_elf_examine(fd, &info);
		if (identified != corpus[i].error || examined != corpus[i].examined_error)
			fail_msg("'%s': %d and %d", corpus[i].name, identified, examined);
		/* and nothing is handed out on failure */
		assert_id(&id, corpus[i].id ? corpus[i].id : "");
		assert_id(&info.id, corpus[i].id && examined == 0 ? corpus[i].id : "");
	}
}

static void test_corpus_has_its_contents(void **state)
{
	static const struct {
		const char *name, *alt;
		bool code;
	} files[] = {
		{ "altlink", "808182838485868788898a8b8c8d8e8f90919293", false },
		{ "altlink-without-id", "", false },
		{ "altlink-unended", "", false },
		{ "linked-32be", "", true },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		bid_auto_fd int fd = open_corpus(files[i].name);
		struct bid_elf_info info;

		assert_int_equal(bid_elf_examine(fd, &info), 0);
		assert_id(&info.alt, files[i].alt);
		assert_int_equal(info.has_code, files[i].code);
		assert_int_equal(info.has_dwarf, !files[i].code);
		assert_int_equal(info.has_symtab, !files[i].code);
	}
}

static void test_longest_id_is_read(void **state)
{
	bid_auto_fd int fd = open_corpus("id-64");
	struct bid_elf_info info;
	struct bid_id id;

	assert_int_equal(bid_elf_build_id(fd, &id), 0);
	assert_int_equal(id.len, BID_ID_MAX);
	for (int i = 0; i < BID_ID_MAX; i++)
		assert_int_equal(id.bytes[i], i);
	assert_int_equal(bid_elf_examine(fd, &info), 0);
	assert_true(bid_id_equal(&info.id, &id));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus_has_its_ids),
		cmocka_unit_test(test_corpus_has_its_contents),
		cmocka_unit_test(test_longest_id_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
