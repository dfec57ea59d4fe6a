// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/artifact.h"
#include "base/cleanup.h"

static void test_source_path_becomes_canonical(void **state)
{
	static const char *const cases[][2] = {
		{ "/usr/src/a.c", "/usr/src/a.c" },
		{ "//usr///src//a.c", "/usr/src/a.c" },
		{ "/usr/./src/a.c", "/usr/src/a.c" },
		{ "/build/glibc/csu/../sysdeps/x86_64/start.S", "/build/glibc/sysdeps/x86_64/start.S" },
		{ "/a/b/c/../../../d.c", "/d.c" },
		{ "/a/..b/...", "/a/..b/..." },
		{ "/a b/c++/\xff", "/a b/c++/\xff" },
		{ "/x", "/x" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bid_detail *detail;

		assert_int_equal(bid_detail_source(cases[i][0], &detail), 0);
		assert_string_equal(bid_detail_text(detail), cases[i][1]);
		bid_detail_unref(detail);
	}
}

static void test_malformed_source_path_is_refused(void **state)
{
	static const char *const cases[] = {
		"",    "/",    "a.c",	  "./a.c", "../a.c", "/..",   "/../etc/passwd", "/a/../../etc/passwd",
		"/a/", "/a/.", "/a/b/..", "/a\nb", "/a\x7f", "/\x01",
	};
	struct bid_detail *detail = (struct bid_detail *)cases;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(bid_detail_source(cases[i], &detail), -EINVAL);
	assert_ptr_equal(detail, cases);
}

/* "/aaa...": one component of @len bytes. */
static void fill(char *path, size_t len)
{
	path[0] = '/';
	memset(path + 1, 'a', len);
	path[len + 1] = '\0';
}

static void test_long_source_path_is_refused(void **state)
{
	bid_auto_free char *path = malloc(BID_DETAIL_MAX + 2);
	struct bid_detail *detail;

	assert_non_null(path);
	fill(path, NAME_MAX);
	assert_int_equal(bid_detail_source(path, &detail), 0);
	bid_detail_unref(detail);
	assert_int_equal(bid_detail_section(path + 1, &detail), 0);
	bid_detail_unref(detail);
	fill(path, NAME_MAX + 1);
	assert_int_equal(bid_detail_source(path, &detail), -EINVAL);
	assert_int_equal(bid_detail_section(path + 1, &detail), -EINVAL);

	for (size_t i = 0; i < BID_DETAIL_MAX + 1; i++)
		path[i] = i % 200 ? 'a' : '/';
	path[BID_DETAIL_MAX + 1] = '\0';
	assert_int_equal(bid_detail_source(path, &detail), -EINVAL);
	path[BID_DETAIL_MAX] = '\0';
	assert_int_equal(bid_detail_source(path, &detail), 0);
	assert_string_equal(bid_detail_text(detail), path);
	bid_detail_unref(detail);

	for (size_t i = 0; i < 2 * BID_DETAIL_DEPTH; i++)
		path[i] = i % 2 ? 'a' : '/';
	path[2 * BID_DETAIL_DEPTH] = '\0';
	assert_int_equal(bid_detail_source(path, &detail), 0);
	bid_detail_unref(detail);
	memcpy(path + 2 * BID_DETAIL_DEPTH, "/a", 3);
	assert_int_equal(bid_detail_source(path, &detail), -EINVAL);
}

static void test_malformed_section_name_is_refused(void **state)
{
	static const char *const good[] = { ".text", ".debug_line", ".gnu.version_r", "..x", "a b", "\xff" };
	static const char *const bad[] = { "", ".", "..", "a/b", "/", "a\tb" };
	struct bid_detail *detail;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(bid_detail_section(good[i], &detail), 0);
		assert_string_equal(bid_detail_text(detail), good[i]);
		bid_detail_unref(detail);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(bid_detail_section(bad[i], &detail), -EINVAL);
}

static void test_request_without_its_detail_is_invalid(void **state)
{
	struct bid_request request = { .kind = BID_KIND_SECTION }, kept;
	struct bid_detail *detail;

	assert_int_equal(bid_id_parse_str("aabb", &request.id), 0);
	assert_int_equal(bid_detail_section(".text", &detail), 0);
	assert_false(bid_request_valid(&request));
	request.detail = detail;
	assert_true(bid_request_valid(&request));
	request.kind = BID_KIND_ELF;
	assert_false(bid_request_valid(&request));
	request.kind = BID_KIND_END;
	assert_false(bid_request_valid(&request));
	request.kind = BID_KIND_SOURCE;
	request.id.len = 0;
	assert_false(bid_request_valid(&request));

	kept = bid_request_keep(&request);
	bid_detail_unref(detail);
	assert_string_equal(bid_detail_text(kept.detail), ".text");
	bid_request_release(&kept);
	assert_null(kept.detail);
	assert_string_equal(bid_detail_text(NULL), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_source_path_becomes_canonical),
		cmocka_unit_test(test_malformed_source_path_is_refused),
		cmocka_unit_test(test_long_source_path_is_refused),
		cmocka_unit_test(test_malformed_section_name_is_refused),
		cmocka_unit_test(test_request_without_its_detail_is_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
