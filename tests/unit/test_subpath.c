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
		struct bid_subpath *subpath;

		assert_int_equal(bid_subpath_source(cases[i][0], &subpath), 0);
		assert_string_equal(bid_subpath_text(subpath), cases[i][1]);
		bid_subpath_unref(subpath);
	}
}

static void test_malformed_source_path_is_refused(void **state)
{
	static const char *const cases[] = {
		"",    "/",    "a.c",	  "./a.c", "../a.c", "/..",   "/../etc/passwd", "/a/../../etc/passwd",
		"/a/", "/a/.", "/a/b/..", "/a\nb", "/a\x7f", "/\x01",
	};
	struct bid_subpath *subpath = (struct bid_subpath *)cases;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(bid_subpath_source(cases[i], &subpath), -EINVAL);
	assert_ptr_equal(subpath, cases);
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
	bid_auto_free char *path = malloc(BID_SUBPATH_MAX + 2);
	struct bid_subpath *subpath;

	assert_non_null(path);
	fill(path, NAME_MAX);
	assert_int_equal(bid_subpath_source(path, &subpath), 0);
	bid_subpath_unref(subpath);
	assert_int_equal(bid_subpath_section(path + 1, &subpath), 0);
	bid_subpath_unref(subpath);
	fill(path, NAME_MAX + 1);
	assert_int_equal(bid_subpath_source(path, &subpath), -EINVAL);
	assert_int_equal(bid_subpath_section(path + 1, &subpath), -EINVAL);

	for (size_t i = 0; i < BID_SUBPATH_MAX + 1; i++)
		path[i] = i % 200 ? 'a' : '/';
	path[BID_SUBPATH_MAX + 1] = '\0';
	assert_int_equal(bid_subpath_source(path, &subpath), -EINVAL);
	path[BID_SUBPATH_MAX] = '\0';
	assert_int_equal(bid_subpath_source(path, &subpath), 0);
	assert_string_equal(bid_subpath_text(subpath), path);
	bid_subpath_unref(subpath);

	for (size_t i = 0; i < 2 * BID_SUBPATH_DEPTH; i++)
		path[i] = i % 2 ? 'a' : '/';
	path[2 * BID_SUBPATH_DEPTH] = '\0';
	assert_int_equal(bid_subpath_source(path, &subpath), 0);
	bid_subpath_unref(subpath);
	memcpy(path + 2 * BID_SUBPATH_DEPTH, "/a", 3);
	assert_int_equal(bid_subpath_source(path, &subpath), -EINVAL);
}

static void test_malformed_section_name_is_refused(void **state)
{
	static const char *const good[] = { ".text", ".debug_line", ".gnu.version_r", "..x", "a b", "\xff" };
	static const char *const bad[] = { "", ".", "..", "a/b", "/", "a\tb" };
	struct bid_subpath *subpath;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(bid_subpath_section(good[i], &subpath), 0);
		assert_string_equal(bid_subpath_text(subpath), good[i]);
		bid_subpath_unref(subpath);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(bid_subpath_section(bad[i], &subpath), -EINVAL);
}

static void test_request_without_its_subpath_is_invalid(void **state)
{
	struct bid_artifact artifact = { .kind = BID_KIND_SECTION }, kept;
	struct bid_subpath *subpath;

	assert_int_equal(bid_id_parse_str("aabb", &artifact.id), 0);
	assert_int_equal(bid_subpath_section(".text", &subpath), 0);
	assert_false(bid_artifact_valid(&artifact));
	artifact.subpath = subpath;
	assert_true(bid_artifact_valid(&artifact));
	artifact.kind = BID_KIND_ELF;
	assert_false(bid_artifact_valid(&artifact));
	artifact.kind = BID_KIND_END;
	assert_false(bid_artifact_valid(&artifact));
	artifact.kind = BID_KIND_SOURCE;
	artifact.id.len = 0;
	assert_false(bid_artifact_valid(&artifact));

	kept = bid_artifact_copy(&artifact);
	bid_subpath_unref(subpath);
	assert_string_equal(bid_subpath_text(kept.subpath), ".text");
	bid_artifact_release(&kept);
	assert_null(kept.subpath);
	assert_string_equal(bid_subpath_text(NULL), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_source_path_becomes_canonical),
		cmocka_unit_test(test_malformed_source_path_is_refused),
		cmocka_unit_test(test_long_source_path_is_refused),
		cmocka_unit_test(test_malformed_section_name_is_refused),
		cmocka_unit_test(test_request_without_its_subpath_is_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
