// SPDX-License-Identifier: LGPL-2.1-or-later
/* Temporary files: which have a name, and how long each lives. */
#include "store_scene.h"

#include <errno.h>

#include <bid/id.h>

#include "write/staged.h"

static struct bid_staging *staging;
static const struct bid_id id = { .len = 20, .bytes = { 0xaa } };

static int begin(void **state)
{
	int r = store_scene_begin(state);

	return r < 0 ? r : bid_staging_new(&staging);
}

static int end(void **state)
{
	bid_staging_free(staging);
	return store_scene_end(state);
}

/* The caller puts it. */
static struct bid_staged *file(const struct store_scene *scene, const char *dir, const char *name)
{
	struct bid_staged *staged;

	assert_int_equal(bid_staging_begin(staging, scene->store, &id, dir, name, &staged), 0);
	return staged;
}

static bool has_name(const char *dir, const char *name)
{
	struct bid_staged *staged = bid_staging_find(staging, dir, name);
	bool has = staged != NULL;

	bid_staged_put(staging, staged);
	return has;
}

static bool has_number(uint32_t serial)
{
	struct bid_staged *staged = bid_staging_get(staging, serial);
	bool has = staged != NULL;

	assert_true(!has || staged->serial == serial);
	bid_staged_put(staging, staged);
	return has;
}

static void file_without_a_name_lives_as_long_as_its_users(void **state)
{
	struct bid_staged *handle = file(*state, "a", "elf"), *next;
	uint32_t serial = handle->serial;

	assert_true(has_name("a", "elf") && has_number(serial) && bid_staged_has_name(staging, handle));
	assert_int_equal(bid_staging_begin(staging, ((struct store_scene *)*state)->store, &id, "a", "elf", &next), -EEXIST);
	bid_staged_unname(staging, handle);
	bid_staged_unname(staging, handle);
	assert_true(!has_name("a", "elf") && has_number(serial) && !bid_staged_has_name(staging, handle));
	assert_null(bid_staging_first(staging));
	/* the name is free, the number is not */
	next = file(*state, "a", "elf");
	assert_true(next->serial != serial && has_name("a", "elf"));
	bid_staged_put(staging, next);
	assert_true(has_name("a", "elf"));
	assert_ptr_equal(bid_staged_ref(staging, handle), handle);
	bid_staged_put(staging, handle);
	assert_true(bid_stage_fd(handle->stage) >= 0 && has_number(serial));
	bid_staged_put(staging, handle);
	assert_false(has_number(serial));
}

static void last_writer_is_told_and_the_only_one_known(void **state)
{
	struct bid_staged *staged = file(*state, "a", "elf");

	bid_staged_open(staging, staged, 7);
	assert_true(bid_staged_is_writer(staging, staged, 7) && !bid_staged_is_writer(staging, staged, 8));
	bid_staged_open(staging, staged, 7);
	assert_false(bid_staged_is_writer(staging, staged, 7));
	assert_false(bid_staged_close(staging, staged));
	assert_null(bid_staging_idle(staging, 0));
	assert_true(bid_staged_close(staging, staged));
	bid_staged_put(staging, staged);
	staged = bid_staging_idle(staging, 0);
	assert_non_null(staged);
	assert_null(bid_staging_idle(staging, 3600));
	bid_staged_put(staging, staged);
}

static void directory_is_written_while_a_writer_is_open(void **state)
{
	struct bid_staged *a = file(*state, "a", "elf"), *b = file(*state, "b", ".elf.x");

	bid_staged_open(staging, b, 1);
	assert_true(bid_staging_has_in(staging, "b", true) && !bid_staging_has_in(staging, "a", true));
	bid_staging_unname_in(staging, "b");
	assert_true(!has_name("b", ".elf.x") && has_name("a", "elf") && has_number(b->serial));
	assert_false(bid_staging_has_in(staging, "b", true));
	assert_true(bid_staged_close(staging, b));
	bid_staged_put(staging, a);
	bid_staged_put(staging, b);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(file_without_a_name_lives_as_long_as_its_users),
		TEST(last_writer_is_told_and_the_only_one_known),
		TEST(directory_is_written_while_a_writer_is_open),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
