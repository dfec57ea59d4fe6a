// SPDX-License-Identifier: LGPL-2.1-or-later
/* The ratelimit of misses: a burst, then a rate, for each user by himself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vfs/ratelimit.h"

#define RATE  50
#define OWNER 1000

static unsigned take_all(struct bid_ratelimit *ratelimit, uid_t uid, int64_t now_ms)
{
	unsigned n = 0;

	while (n < 10000 && bid_ratelimit_take(ratelimit, uid, now_ms))
		n++;
	return n;
}

static void test_burst_is_followed_by_the_rate(void **state)
{
	struct bid_ratelimit ratelimit;

	bid_ratelimit_init(&ratelimit, RATE, OWNER);
	assert_int_equal(take_all(&ratelimit, 1, 5000), RATE * BID_RATELIMIT_BURST);
	assert_int_equal(ratelimit.refused, 1);
	assert_int_equal(take_all(&ratelimit, 1, 5019), 0);
	assert_int_equal(take_all(&ratelimit, 1, 5020), 1);
	assert_int_equal(take_all(&ratelimit, 1, 6020), RATE);
	/* many small steps are as much as one large one */
	for (int64_t now = 6021; now < 7020; now++)
		assert_true(bid_ratelimit_take(&ratelimit, 1, now) == ((now - 6020) % 20 == 0));
	/* it never holds more than the burst */
	assert_int_equal(take_all(&ratelimit, 1, INT64_C(1) << 50), RATE * BID_RATELIMIT_BURST);
	bid_ratelimit_release(&ratelimit);
}

static void test_users_have_buckets_of_their_own(void **state)
{
	struct bid_ratelimit ratelimit;

	bid_ratelimit_init(&ratelimit, RATE, OWNER);
	assert_int_equal(take_all(&ratelimit, 1, 0), RATE * BID_RATELIMIT_BURST);
	assert_int_equal(take_all(&ratelimit, 2, 0), RATE * BID_RATELIMIT_BURST);
	assert_int_equal(take_all(&ratelimit, 1, 0), 0);
	assert_int_equal(take_all(&ratelimit, OWNER, 0), 10000);
	assert_int_equal(take_all(&ratelimit, 0, 0), 10000);
	bid_ratelimit_release(&ratelimit);
}

/* With more users than buckets, a user that continues keeps its empty bucket. */
static void test_busy_user_keeps_its_empty_bucket(void **state)
{
	struct bid_ratelimit ratelimit;

	bid_ratelimit_init(&ratelimit, RATE, OWNER);
	assert_int_equal(take_all(&ratelimit, 1, 0), RATE * BID_RATELIMIT_BURST);
	for (uid_t uid = 2000; uid < 2000 + 3 * BID_RATELIMIT_USERS; uid++) {
		assert_true(bid_ratelimit_take(&ratelimit, uid, 1));
		assert_false(bid_ratelimit_take(&ratelimit, 1, 2));
	}
	bid_ratelimit_release(&ratelimit);
}

static void test_rate_0_is_unlimited(void **state)
{
	struct bid_ratelimit ratelimit;

	bid_ratelimit_init(&ratelimit, 0, OWNER);
	assert_int_equal(take_all(&ratelimit, 1, 0), 10000);
	assert_int_equal(ratelimit.refused, 0);
	bid_ratelimit_release(&ratelimit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_is_followed_by_the_rate),
		cmocka_unit_test(test_users_have_buckets_of_their_own),
		cmocka_unit_test(test_busy_user_keeps_its_empty_bucket),
		cmocka_unit_test(test_rate_0_is_unlimited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
