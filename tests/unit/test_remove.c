// SPDX-License-Identifier: LGPL-2.1-or-later
/* Remove builds and their paths: a build with another path stays, one without leaves nothing behind. */
#include "api/remove.h"
#include "store_scene.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINK_A ".build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void add(const struct store_scene *scene, const char *name)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", scene->directory, name);
	assert_int_equal(bid_store_add(scene->store, path, BID_LINK_COPY, &added), 0);
}

static struct bid_removal remove_name(const struct store_scene *scene, const char *hex, const char *name)
{
	struct bid_removal removal = { .id = id_of(hex) };
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", scene->directory, name ? name : "");
	removal.path = !name ? NULL : *name == '/' || *name == '[' ? name : path;
	assert_int_equal(bid_store_remove(scene->store, &removal, 1), 0);
	removal.path = NULL;
	return removal;
}

/* Nothing but our own folder and perf's directories of links. */
static void nothing_is_left(const struct store_scene *scene)
{
	nothing_is_wrong(scene);
	run(scene, "test -z \"$(find store -mindepth 1 ! -path 'store/.build-id*' ! -path 'store/.bidfs*')\" && "
		   "test -z \"$(find store/.build-id store/.bidfs/record -type f -o -type l 2>/dev/null)\"");
}

static void test_build_is_removed_with_all_paths(void **state)
{
	struct store_scene *scene = *state;
	struct bid_removal removal;

	run(scene, "cp a a2");
	add(scene, "a");
	add(scene, "a2");
	add(scene, "a.debug");
	perf_adds(scene, "a", "opt/orphan", ID_A, "elf");
	removal = remove_name(scene, ID_A, NULL);
	assert_int_equal(removal.error, 0);
	assert_int_equal(removal.names, 3);
	assert_int_equal(removal.left, 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), -ENOENT);
	nothing_is_left(scene);
	assert_int_equal(remove_name(scene, ID_A, NULL).error, -ENOENT);
}

static void test_other_path_gets_the_link(void **state)
{
	struct store_scene *scene = *state;
	struct bid_removal removal;

	run(scene, "cp a.stripped one && cp a.stripped other");
	add(scene, "one");
	add(scene, "other");
	add(scene, "a.debug");
	run(scene, "test -f store/$PWD/one/" ID_A "/debug && ! test -e store/$PWD/other/" ID_A "/debug");
	/* the target of the link, which alone has the debug file */
	removal = remove_name(scene, ID_A, "one");
	assert_int_equal(removal.error, 0);
	assert_int_equal(removal.names, 1);
	assert_int_equal(removal.left, 1);
	run(scene, "test \"$(readlink store/" LINK_A ")\" = ../..$PWD/other/" ID_A " && ! test -e store/$PWD/one");
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_DEBUGINFO), 0);
	nothing_is_wrong(scene);
	assert_int_equal(remove_name(scene, ID_A, "one").error, -ENOENT);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(remove_name(scene, ID_A, "other").error, 0);
	nothing_is_left(scene);
}

static void test_further_path_is_removed_alone(void **state)
{
	struct store_scene *scene = *state;

	run(scene, "cp a a2");
	add(scene, "a");
	add(scene, "a2");
	assert_int_equal(remove_name(scene, ID_A, "a2").left, 1);
	run(scene, "test \"$(readlink store/" LINK_A ")\" = ../..$PWD/a/" ID_A "");
	nothing_is_wrong(scene);
}

static void test_orphan_gets_the_link(void **state)
{
	struct store_scene *scene = *state;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "a", "opt/a", ID_A, "elf");
	assert_int_equal(remove_name(scene, ID_A, "/usr/bin/a").error, 0);
	run(scene, "test \"$(readlink store/" LINK_A ")\" = ../../opt/a/" ID_A);
	nothing_is_wrong(scene);
	/* bidctl can remove the build, perf cannot */
	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	assert_int_equal(remove_name(scene, ID_A, "/usr/bin/a").error, 0);
	nothing_is_wrong(scene);
}

/* Its file was edited in place: removing the path under which it was right keeps the build. */
static void test_only_right_file_gets_the_link(void **state)
{
	struct store_scene *scene = *state;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "a", "opt/a", ID_A, "elf");
	run(scene, "cp b store/opt/a/" ID_A "/elf");
	assert_int_equal(remove_name(scene, ID_A, "/usr/bin/a").left, 1);
	run(scene, "cmp a store/opt/a/" ID_A "/elf && cmp b store/.bidfs/quarantine/" ID_A ".elf.*");
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
}

static void test_foreign_files_stay(void **state)
{
	struct store_scene *scene = *state;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	run(scene, "echo mine >store/usr/bin/a/" ID_A "/notes && ln store/usr/bin/a/" ID_A "/elf kept");
	assert_int_equal(remove_name(scene, ID_A, NULL).error, 0);
	run(scene, "test -f store/usr/bin/a/" ID_A "/notes && ! test -e store/usr/bin/a/" ID_A "/elf && cmp a kept && "
		   "! test -L store/" LINK_A);
}

static void test_every_alias_and_layout_is_removed(void **state)
{
	struct store_scene *scene = *state;

	add(scene, "long");
	assert_int_equal(remove_name(scene, ID_LONG, NULL).error, 0);
	nothing_is_left(scene);
	/* padded by perf */
	perf_adds(scene, "short", "usr/bin/short", ID_SHORT "0000000000000000000000000000", "elf");
	assert_int_equal(find(scene, ID_SHORT, BID_KIND_ELF), 0);
	assert_int_equal(remove_name(scene, ID_SHORT, NULL).error, 0);
	nothing_is_left(scene);
	/* old layouts: the file in the place of the directory, and in that of the link */
	run(scene, "mkdir -p store/usr/bin/a store/.build-id/aa && cp a store/usr/bin/a/" ID_A " && ln -s ../../usr/bin/a/" ID_A
		   " store/" LINK_A);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(remove_name(scene, ID_A, NULL).error, 0);
	nothing_is_left(scene);
	run(scene, "cp a store/" LINK_A);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(remove_name(scene, ID_A, NULL).names, 1);
	nothing_is_left(scene);
	perf_adds(scene, "a.c", "[kernel.kallsyms]", ID_B, "kallsyms");
	assert_int_equal(remove_name(scene, ID_B, "[kernel.kallsyms]").error, 0);
	nothing_is_left(scene);
}

static void test_many_builds_are_removed_at_once(void **state)
{
	struct store_scene *scene = *state;
	struct bid_removal removals[] = {
		{ .id = id_of(ID_B) }, { .id = id_of(ID_A) }, { .id = id_of(ID_SHORT) }, { .id = id_of(ID_A) }
	};

	add(scene, "a");
	add(scene, "b");
	add(scene, "long");
	assert_int_equal(bid_store_remove(scene->store, removals, 4), 0);
	assert_int_equal(removals[0].error, 0);
	assert_int_equal(removals[1].error, 0);
	assert_int_equal(removals[2].error, -ENOENT);
	assert_int_equal(find(scene, ID_LONG, BID_KIND_ELF), 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), -ENOENT);
	nothing_is_wrong(scene);
}

static int count(void *user, const struct bid_id *id)
{
	++*(unsigned *)user;
	return 0;
}

static void test_all_builds_of_a_path_are_removed(void **state)
{
	struct store_scene *scene = *state;
	unsigned n = 0;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "b", "usr/bin/a", ID_B, "elf");
	perf_adds(scene, "long", "usr/bin/a/more", ID_LONG, "elf");
	assert_int_equal(bid_store_each_build(scene->store, "/usr/bin/a", count, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(bid_store_each_build(scene->store, "/usr/bin/b", count, &n), -ENOENT);
	assert_int_equal(bid_store_each_build(scene->store, "/.build-id", count, &n), -ENOENT);
}

static void test_update_replaces_under_every_path(void **state)
{
	struct store_scene *scene = *state;
	struct bid_added added;
	bool replaced;
	char path[96];

	run(scene, "cp a.stripped file && cp a.stripped other");
	snprintf(path, sizeof(path), "%s/file", scene->directory);
	assert_int_equal(bid_store_update(scene->store, path, BID_LINK_AUTO, &added, &replaced), 0);
	assert_false(replaced);
	add(scene, "other");
	run(scene, "cp a file");
	assert_int_equal(bid_store_update(scene->store, path, BID_LINK_AUTO, &added, &replaced), 0);
	assert_true(replaced);
	run(scene, "cmp a store/$PWD/file/" ID_A "/elf && cmp a store/$PWD/other/" ID_A "/elf");
	nothing_is_wrong(scene);
	/* a refused file replaces nothing */
	run(scene, "rm file && head -c 5000 a >file");
	assert_int_equal(bid_store_update(scene->store, path, BID_LINK_AUTO, &added, &replaced), -EBADMSG);
	run(scene, "cmp a store/" LINK_A "/elf");
	run(scene, "test -z \"$(ls store/.bidfs/tmp)\"");
}

static void test_read_only_store_refuses_removal(void **state)
{
	struct store_scene *scene = *state;
	struct bid_removal removal = { .id = id_of(ID_A) };
	struct bid_store *reader;
	char path[96];

	add(scene, "a");
	snprintf(path, sizeof(path), "%s/store", scene->directory);
	assert_int_equal(bid_store_open(path, 0, &reader), 0);
	assert_int_equal(bid_store_remove(reader, &removal, 1), -EROFS);
	bid_store_free(reader);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
	const struct CMUnitTest tests[] = {
		TEST(test_build_is_removed_with_all_paths),   TEST(test_other_path_gets_the_link),
		TEST(test_further_path_is_removed_alone),     TEST(test_orphan_gets_the_link),
		TEST(test_only_right_file_gets_the_link),     TEST(test_foreign_files_stay),
		TEST(test_every_alias_and_layout_is_removed), TEST(test_many_builds_are_removed_at_once),
		TEST(test_all_builds_of_a_path_are_removed),  TEST(test_update_replaces_under_every_path),
		TEST(test_read_only_store_refuses_removal),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
