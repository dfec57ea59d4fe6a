// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/timer.h"

#define N 500

static void test_timers_come_in_order_of_time(void **state)
{
	struct bid_timer timers[N] = { 0 };
	struct bid_timers heap = { 0 };
	unsigned seed = 7, armed = 0;

	for (unsigned round = 0; round < 20 * N; round++) {
		struct bid_timer *timer = &timers[rand_r(&seed) % N];

		armed -= timer->timers != NULL;
		if (rand_r(&seed) % 3 == 0) {
			bid_timer_disarm(timer);
		} else {
			bid_timer_arm(&heap, timer, rand_r(&seed) % 1000);
			armed++;
		}
	}
	for (int64_t last = 0; heap.first; armed--) {
		struct bid_timer *timer = heap.first;

		assert_true(timer->at_ms >= last);
		last = timer->at_ms;
		bid_timer_disarm(timer);
		assert_null(timer->timers);
	}
	assert_int_equal(armed, 0);
}

static void test_disarm_of_idle_timer_does_nothing(void **state)
{
	struct bid_timers heap = { 0 };
	struct bid_timer one = { 0 }, two = { 0 };

	bid_timer_arm(&heap, &one, 1);
	bid_timer_disarm(&two);
	assert_ptr_equal(heap.first, &one);
	bid_timer_disarm(&one);
	bid_timer_disarm(&one);
	assert_null(heap.first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timers_come_in_order_of_time),
		cmocka_unit_test(test_disarm_of_idle_timer_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
