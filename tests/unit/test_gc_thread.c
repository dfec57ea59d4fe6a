// SPDX-License-Identifier: LGPL-2.1-or-later
/* The gc thread of a store, and a clock that the test moves. */
#include "store_scene.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../clock/test_clock.h"
#include "api/evict.h"

enum {
	MINUTE_MS = 60000,
	HOUR_MS = 3600000,
	PATIENCE_MS = 20000,
	STEP_MS = 5,
	LATE_MS = 2000,
	REST_MS = 100, /* in which nothing is to happen */
};

static int count(void *user, const struct stat *st)
{
	atomic_uint *asked = user;

	assert_null(st);
	atomic_fetch_add(asked, 1);
	return 0;
}

/* On a busy machine the gc thread may begin its next minute after the test's: then there is one more. */
static void await(const atomic_uint *asked, unsigned wanted)
{
	for (unsigned ms = 0; atomic_load(asked) < wanted; ms += STEP_MS) {
		assert_true(ms < PATIENCE_MS);
		if (ms % LATE_MS == LATE_MS - STEP_MS)
			test_clock_advance_ms(MINUTE_MS);
		usleep(STEP_MS * 1000);
	}
	usleep(REST_MS * 1000);
	assert_int_equal(atomic_load(asked), wanted);
}

/* The gc thread has begun when its first minute is over. Returns how often it has asked. */
static unsigned begin(const struct store_scene *scene, atomic_uint *asked)
{
	bid_store_on_let_go(scene->store, count, asked);
	assert_int_equal(bid_store_keep_limits(scene->store, &(struct bid_limits){ 0 }), 0);
	usleep(REST_MS * 1000);
	assert_int_equal(atomic_load(asked), 0);
	for (unsigned ms = 0; atomic_load(asked) == 0; ms += REST_MS) {
		assert_true(ms < PATIENCE_MS);
		/* less than an hour in all */
		if (ms % (4 * REST_MS) == 0)
			test_clock_advance_ms(MINUTE_MS);
		usleep(REST_MS * 1000);
	}
	/* the last check may be just before the end of a minute */
	usleep(REST_MS * 1000);
	return atomic_load(asked);
}

static void test_unused_descriptors_are_closed_each_minute(void **state)
{
	const struct store_scene *scene = *state;
	atomic_uint asked = 0;

	unsigned minutes = begin(scene, &asked);

	for (unsigned more = 0; more < 3; more++) {
		test_clock_advance_ms(MINUTE_MS);
		await(&asked, ++minutes);
	}
	bid_store_on_let_go(scene->store, NULL, NULL);
	test_clock_advance_ms(MINUTE_MS);
	await(&asked, minutes);
}

static void test_old_records_expire_each_hour(void **state)
{
	const struct store_scene *scene = *state;
	atomic_uint asked = 0;

	/* the thread looks at the store once when it starts */
	unsigned minutes = begin(scene, &asked);

	run(scene, "mkdir -p store/.bidfs/scan && cd store/.bidfs/scan && touch fedcba9876543210 && touch -d '40 days ago' "
		   "0123456789abcdef");
	test_clock_advance_ms(MINUTE_MS);
	await(&asked, minutes + 1);
	assert_true(has_path(scene, ".bidfs/scan/0123456789abcdef"));
	test_clock_advance_ms(HOUR_MS);
	for (unsigned ms = 0; has_path(scene, ".bidfs/scan/0123456789abcdef"); ms += STEP_MS) {
		assert_true(ms < PATIENCE_MS);
		usleep(STEP_MS * 1000);
	}
	assert_true(has_path(scene, ".bidfs/scan/fedcba9876543210"));
	bid_store_on_let_go(scene->store, NULL, NULL);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
	const struct CMUnitTest tests[] = {
		TEST(test_unused_descriptors_are_closed_each_minute),
		TEST(test_old_records_expire_each_hour),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
