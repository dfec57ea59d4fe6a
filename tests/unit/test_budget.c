// SPDX-License-Identifier: LGPL-2.1-or-later
/* The budget of misses: a burst, then a rate, for each user by himself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vfs/budget.h"

#define RATE  50
#define OWNER 1000

static unsigned take_all(struct bid_budget *budget, uid_t uid, int64_t now_ms)
{
	unsigned n = 0;

	while (n < 10000 && bid_budget_take(budget, uid, now_ms))
		n++;
	return n;
}

static void test_a_burst_then_a_rate(void **state)
{
	struct bid_budget budget;

	bid_budget_init(&budget, RATE, OWNER);
	assert_int_equal(take_all(&budget, 1, 5000), RATE * BID_BUDGET_BURST);
	assert_int_equal(bid_budget_refused(&budget), 1);
	assert_int_equal(take_all(&budget, 1, 5019), 0);
	assert_int_equal(take_all(&budget, 1, 5020), 1);
	assert_int_equal(take_all(&budget, 1, 6020), RATE);
	/* many small steps are as much as one large one */
	for (int64_t now = 6021; now < 7020; now++)
		assert_true(bid_budget_take(&budget, 1, now) == ((now - 6020) % 20 == 0));
	/* it never holds more than the burst */
	assert_int_equal(take_all(&budget, 1, INT64_C(1) << 50), RATE * BID_BUDGET_BURST);
	bid_budget_release(&budget);
}

static void test_users_are_apart(void **state)
{
	struct bid_budget budget;

	bid_budget_init(&budget, RATE, OWNER);
	assert_int_equal(take_all(&budget, 1, 0), RATE * BID_BUDGET_BURST);
	assert_int_equal(take_all(&budget, 2, 0), RATE * BID_BUDGET_BURST);
	assert_int_equal(take_all(&budget, 1, 0), 0);
	assert_int_equal(take_all(&budget, OWNER, 0), 10000);
	assert_int_equal(take_all(&budget, 0, 0), 10000);
	bid_budget_release(&budget);
}

/* More users than are told apart: the one who asks now is not the one who is forgotten. */
static void test_many_users(void **state)
{
	struct bid_budget budget;

	bid_budget_init(&budget, RATE, OWNER);
	assert_int_equal(take_all(&budget, 1, 0), RATE * BID_BUDGET_BURST);
	for (uid_t uid = 2000; uid < 2000 + 3 * BID_BUDGET_USERS; uid++) {
		assert_true(bid_budget_take(&budget, uid, 1));
		assert_false(bid_budget_take(&budget, 1, 2));
	}
	bid_budget_release(&budget);
}

static void test_no_limit(void **state)
{
	struct bid_budget budget;

	bid_budget_init(&budget, 0, OWNER);
	assert_int_equal(take_all(&budget, 1, 0), 10000);
	assert_int_equal(bid_budget_refused(&budget), 0);
	bid_budget_release(&budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_burst_then_a_rate),
		cmocka_unit_test(test_users_are_apart),
		cmocka_unit_test(test_many_users),
		cmocka_unit_test(test_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
