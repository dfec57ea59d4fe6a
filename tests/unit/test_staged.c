// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is being written: which of it has a name, which only a number, and which is gone. */
#include "store_scene.h"

#include <bid/id.h>

#include "../../fs/staged.h"

enum { MAX = 3 };

static struct bid_staging *staging;
static const struct bid_id id = { .len = 20, .bytes = { 0xaa } };

static int begin(void **state)
{
	int r = store_scene_begin(state);

	return r < 0 ? r : bid_staging_new(MAX, &staging);
}

static int end(void **state)
{
	bid_staging_free(staging);
	return store_scene_end(state);
}

/* Returns the serial. */
static uint32_t file(const struct store_scene *scene, const char *dir, const char *name)
{
	struct bid_staged *staged;
	uint32_t serial;

	assert_int_equal(bid_staging_begin(staging, scene->store, &id, 1, dir, name, &staged), 0);
	serial = staged->serial;
	bid_staged_put(staging, staged);
	return serial;
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

static void by_number(uint32_t serial, void (*function)(struct bid_staging *staging, struct bid_staged *staged))
{
	struct bid_staged *staged = bid_staging_get(staging, serial);

	assert_non_null(staged);
	function(staging, staged);
	bid_staged_put(staging, staged);
}

static void what_ended_has_its_number(void **state)
{
	uint32_t a = file(*state, "a", "elf");
	struct bid_staged *used = bid_staging_get(staging, a);

	assert_true(has_name("a", "elf") && has_number(a) && !used->ended);
	by_number(a, bid_staging_end);
	by_number(a, bid_staging_end);
	assert_true(!has_name("a", "elf") && has_number(a) && used->ended);
	assert_null(bid_staging_next(staging, 0));
	assert_null(bid_staging_idle(staging, 0, false));
	assert_false(bid_staging_closed(staging, a));
	/* the name is free */
	assert_int_not_equal(file(*state, "a", "elf"), a);
	assert_true(has_name("a", "elf"));
	bid_staging_forget(staging, a);
	assert_false(has_number(a));
	/* who has it uses it still */
	assert_true(bid_stage_fd(used->stage) >= 0);
	bid_staging_drop(staging, used);
	bid_staging_end(staging, used);
	assert_false(has_number(a));
	bid_staged_put(staging, used);
}

static void what_has_a_name_is_not_forgotten(void **state)
{
	uint32_t a = file(*state, "a", "elf");

	bid_staging_forget(staging, a);
	assert_true(has_name("a", "elf") && has_number(a));
}

static void what_was_used_last_is_kept(void **state)
{
	uint32_t ended[MAX + 2];

	for (int i = 0; i < MAX + 2; i++) {
		ended[i] = file(*state, "a", "elf");
		by_number(ended[i], bid_staging_end);
		/* the first is read again and again */
		assert_true(has_number(ended[0]));
	}
	for (int i = 0; i < MAX + 2; i++)
		assert_int_equal(has_number(ended[i]), i == 0 || i > 2);
}

static void what_is_dropped_is_gone(void **state)
{
	uint32_t a = file(*state, "a", "elf"), b = file(*state, "b", "elf"), c = file(*state, "b", "debug"),
		 d = file(*state, "b", "probes"), e = file(*state, "c", "elf");

	by_number(a, bid_staging_drop);
	assert_true(!has_name("a", "elf") && !has_number(a));
	bid_staging_opened(staging, c, 1);
	by_number(d, bid_staging_end);
	bid_staging_drop_in(staging, "b", true);
	assert_true(!has_number(b) && has_name("b", "debug") && has_number(d) && has_name("c", "elf"));
	bid_staging_drop_in(staging, "b", false);
	assert_true(!has_number(c) && has_number(d) && has_number(e));
	by_number(d, bid_staging_drop);
	assert_false(has_number(d));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_ended_has_its_number),
		TEST(what_has_a_name_is_not_forgotten),
		TEST(what_was_used_last_is_kept),
		TEST(what_is_dropped_is_gone),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
