// SPDX-License-Identifier: LGPL-2.1-or-later
/* The gc thread of a store, and a clock that the test moves. */
#include "store_fixture.h"

#include <errno.h>
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

#define OLD ".bidfs/scan/0123456789abcdef"
#define NEW ".bidfs/scan/fedcba9876543210"

static void make_old(const struct store_fixture *fixture)
{
	run(fixture, "mkdir -p store/.bidfs/scan && touch -d '40 days ago' store/" OLD);
}

/* On a busy machine the gc thread may begin its next hour after the test's: then there is one more. */
static void await_expiry(const struct store_fixture *fixture)
{
	for (unsigned ms = 0; has_path(fixture, OLD); ms += STEP_MS) {
		assert_true(ms < PATIENCE_MS);
		if (ms % LATE_MS == LATE_MS - STEP_MS)
			test_clock_advance_ms(HOUR_MS);
		usleep(STEP_MS * 1000);
	}
}

static void test_old_records_expire_each_hour(void **state)
{
	const struct store_fixture *fixture = *state;

	/* the thread looks at the store once when it starts */
	make_old(fixture);
	assert_int_equal(bid_store_keep_limits(fixture->store, &(struct bid_limits){ 0 }), 0);
	await_expiry(fixture);

	make_old(fixture);
	run(fixture, "touch store/" NEW);
	test_clock_advance_ms(MINUTE_MS);
	usleep(REST_MS * 1000);
	assert_true(has_path(fixture, OLD));
	test_clock_advance_ms(HOUR_MS);
	await_expiry(fixture);
	assert_true(has_path(fixture, NEW));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_old_records_expire_each_hour),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
