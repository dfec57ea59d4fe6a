// SPDX-License-Identifier: LGPL-2.1-or-later
/* Remove builds and their paths: a build with another path stays, one without leaves nothing behind. */
#include "api/remove.h"
#include "store_fixture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINK_A ".build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void add(const struct store_fixture *fixture, const char *name)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	assert_int_equal(bid_store_add(fixture->store, path, BID_LINK_COPY, &added), 0);
}

static struct bid_removal remove_name(const struct store_fixture *fixture, const char *hex, const char *name)
{
	struct bid_removal removal = { .id = id_of(hex) };
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name ? name : "");
	removal.path = !name ? NULL : *name == '/' || *name == '[' ? name : path;
	assert_int_equal(bid_store_remove(fixture->store, &removal, 1), 0);
	removal.path = NULL;
	return removal;
}

/* Nothing but our own folder and perf's directories of links. */
static void nothing_is_left(const struct store_fixture *fixture)
{
	nothing_is_wrong(fixture);
	run(fixture, "test -z \"$(find store -mindepth 1 ! -path 'store/.build-id*' ! -path 'store/.bidfs*')\" && "
		     "test -z \"$(find store/.build-id store/.bidfs/record -type f -o -type l 2>/dev/null)\"");
}

static void test_build_is_removed_with_all_paths(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_removal removal;

	run(fixture, "cp a a2");
	add(fixture, "a");
	add(fixture, "a2");
	add(fixture, "a.debug");
	perf_adds(fixture, "a", "opt/orphan", ID_A, "elf");
	removal = remove_name(fixture, ID_A, NULL);
	assert_int_equal(removal.error, 0);
	assert_int_equal(removal.names, 3);
	assert_int_equal(removal.left, 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	nothing_is_left(fixture);
	assert_int_equal(remove_name(fixture, ID_A, NULL).error, -ENOENT);
}

static void test_other_path_gets_the_link(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_removal removal;

	run(fixture, "cp a.stripped one && cp a.stripped other");
	add(fixture, "one");
	add(fixture, "other");
	add(fixture, "a.debug");
	run(fixture, "test -f store/$PWD/one/" ID_A "/debug && ! test -e store/$PWD/other/" ID_A "/debug");
	/* the target of the link, which alone has the debug file */
	removal = remove_name(fixture, ID_A, "one");
	assert_int_equal(removal.error, 0);
	assert_int_equal(removal.names, 1);
	assert_int_equal(removal.left, 1);
	run(fixture, "test \"$(readlink store/" LINK_A ")\" = ../..$PWD/other/" ID_A " && ! test -e store/$PWD/one");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	nothing_is_wrong(fixture);
	assert_int_equal(remove_name(fixture, ID_A, "one").error, -ENOENT);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(remove_name(fixture, ID_A, "other").error, 0);
	nothing_is_left(fixture);
}

static void test_further_path_is_removed_alone(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture, "cp a a2");
	add(fixture, "a");
	add(fixture, "a2");
	assert_int_equal(remove_name(fixture, ID_A, "a2").left, 1);
	run(fixture, "test \"$(readlink store/" LINK_A ")\" = ../..$PWD/a/" ID_A "");
	nothing_is_wrong(fixture);
}

static void test_orphan_gets_the_link(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "a", "opt/a", ID_A, "elf");
	assert_int_equal(remove_name(fixture, ID_A, "/usr/bin/a").error, 0);
	run(fixture, "test \"$(readlink store/" LINK_A ")\" = ../../opt/a/" ID_A);
	nothing_is_wrong(fixture);
	/* bidctl can remove the build, perf cannot */
	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	assert_int_equal(remove_name(fixture, ID_A, "/usr/bin/a").error, 0);
	nothing_is_wrong(fixture);
}

/* Its file was edited in place: removing the path under which it was right keeps the build. */
static void test_only_right_file_gets_the_link(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "a", "opt/a", ID_A, "elf");
	run(fixture, "cp b store/opt/a/" ID_A "/elf");
	assert_int_equal(remove_name(fixture, ID_A, "/usr/bin/a").left, 1);
	run(fixture, "cmp a store/opt/a/" ID_A "/elf && cmp b store/.bidfs/quarantine/" ID_A ".elf.*");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
}

static void test_foreign_files_stay(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	run(fixture, "echo mine >store/usr/bin/a/" ID_A "/notes && ln store/usr/bin/a/" ID_A "/elf kept");
	assert_int_equal(remove_name(fixture, ID_A, NULL).error, 0);
	run(fixture, "test -f store/usr/bin/a/" ID_A "/notes && ! test -e store/usr/bin/a/" ID_A "/elf && cmp a kept && "
		     "! test -L store/" LINK_A);
}

static void test_every_alias_is_removed(void **state)
{
	struct store_fixture *fixture = *state;

	add(fixture, "long");
	assert_int_equal(remove_name(fixture, ID_LONG, NULL).error, 0);
	nothing_is_left(fixture);
	/* padded by perf */
	perf_adds(fixture, "short", "usr/bin/short", ID_SHORT "0000000000000000000000000000", "elf");
	assert_int_equal(find(fixture, ID_SHORT, BID_KIND_ELF), 0);
	assert_int_equal(remove_name(fixture, ID_SHORT, NULL).error, 0);
	nothing_is_left(fixture);
	perf_adds(fixture, "a.c", "[kernel.kallsyms]", ID_B, "kallsyms");
	assert_int_equal(remove_name(fixture, ID_B, "[kernel.kallsyms]").error, 0);
	nothing_is_left(fixture);
}

static void test_many_builds_are_removed_at_once(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_removal removals[] = {
		{ .id = id_of(ID_B) }, { .id = id_of(ID_A) }, { .id = id_of(ID_SHORT) }, { .id = id_of(ID_A) }
	};

	add(fixture, "a");
	add(fixture, "b");
	add(fixture, "long");
	assert_int_equal(bid_store_remove(fixture->store, removals, 4), 0);
	assert_int_equal(removals[0].error, 0);
	assert_int_equal(removals[1].error, 0);
	assert_int_equal(removals[2].error, -ENOENT);
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	nothing_is_wrong(fixture);
}

static int count(void *user, const struct bid_id *id)
{
	++*(unsigned *)user;
	return 0;
}

static void test_all_builds_of_a_path_are_removed(void **state)
{
	struct store_fixture *fixture = *state;
	unsigned n = 0;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "b", "usr/bin/a", ID_B, "elf");
	perf_adds(fixture, "long", "usr/bin/a/more", ID_LONG, "elf");
	assert_int_equal(bid_store_each_build(fixture->store, "/usr/bin/a", count, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(bid_store_each_build(fixture->store, "/usr/bin/b", count, &n), -ENOENT);
	assert_int_equal(bid_store_each_build(fixture->store, "/.build-id", count, &n), -ENOENT);
}

static void test_update_replaces_under_every_path(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_added added;
	bool replaced;
	char path[96];

	run(fixture, "cp a.stripped file && cp a.stripped other");
	snprintf(path, sizeof(path), "%s/file", fixture->directory);
	assert_int_equal(bid_store_update(fixture->store, path, BID_LINK_AUTO, &added, &replaced), 0);
	assert_false(replaced);
	add(fixture, "other");
	run(fixture, "cp a file");
	assert_int_equal(bid_store_update(fixture->store, path, BID_LINK_AUTO, &added, &replaced), 0);
	assert_true(replaced);
	run(fixture, "cmp a store/$PWD/file/" ID_A "/elf && cmp a store/$PWD/other/" ID_A "/elf");
	nothing_is_wrong(fixture);
	/* a refused file replaces nothing */
	run(fixture, "rm file && head -c 5000 a >file");
	assert_int_equal(bid_store_update(fixture->store, path, BID_LINK_AUTO, &added, &replaced), -EBADMSG);
	run(fixture, "cmp a store/" LINK_A "/elf");
	run(fixture, "test -z \"$(ls store/.bidfs/tmp)\"");
}

static void test_read_only_store_refuses_removal(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_removal removal = { .id = id_of(ID_A) };
	struct bid_store *reader;
	char path[96];

	add(fixture, "a");
	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, 0, &reader), 0);
	assert_int_equal(bid_store_remove(reader, &removal, 1), -EROFS);
	bid_store_free(reader);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_build_is_removed_with_all_paths),  TEST(test_other_path_gets_the_link),
		TEST(test_further_path_is_removed_alone),    TEST(test_orphan_gets_the_link),
		TEST(test_only_right_file_gets_the_link),    TEST(test_foreign_files_stay),
		TEST(test_every_alias_is_removed),	     TEST(test_many_builds_are_removed_at_once),
		TEST(test_all_builds_of_a_path_are_removed), TEST(test_update_replaces_under_every_path),
		TEST(test_read_only_store_refuses_removal),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
