// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "negative.h"

#define MINUTE 60
#define HOUR   (60 * MINUTE)

static int64_t read_clock(void *user)
{
	return *(int64_t *)user;
}

struct memory {
	int64_t now;
	struct bid_negative *negative;
};

static void begin(struct memory *memory, size_t max)
{
	memory->now = 1000;
	assert_int_equal(bid_negative_new(max, read_clock, &memory->now, &memory->negative), 0);
}

static struct bid_request request(uint64_t number, enum bid_kind kind)
{
	struct bid_request request = { .kind = kind };

	assert_int_equal(bid_id_from_bytes(&number, sizeof(number), &request.id), 0);
	return request;
}

static struct bid_request elf(uint64_t number)
{
	return request(number, BID_KIND_ELF);
}

static void add(struct memory *memory, uint64_t number)
{
	struct bid_request one = elf(number);

	assert_int_equal(bid_negative_add(memory->negative, &one), 0);
}

static unsigned ttl(struct memory *memory, uint64_t number)
{
	struct bid_request one = elf(number);

	return bid_negative_ttl(memory->negative, &one);
}

static void test_a_no_stands_for_ten_minutes(void **state)
{
	struct memory memory;

	begin(&memory, 10);
	assert_int_equal(ttl(&memory, 1), 0);
	add(&memory, 1);
	assert_int_equal(ttl(&memory, 1), 10 * MINUTE);
	assert_int_equal(ttl(&memory, 2), 0);
	memory.now += 10 * MINUTE - 1;
	assert_int_equal(ttl(&memory, 1), 1);
	assert_int_equal(bid_negative_count(memory.negative), 1);
	memory.now += 1;
	assert_int_equal(ttl(&memory, 1), 0);
	assert_int_equal(bid_negative_count(memory.negative), 0);
	bid_negative_free(memory.negative);
}

static void test_kinds_and_ids_are_apart(void **state)
{
	struct bid_request padded = elf(1), debuginfo = request(1, BID_KIND_DEBUGINFO);
	struct memory memory;

	begin(&memory, 10);
	add(&memory, 1);
	padded.id.len++;
	assert_int_equal(bid_negative_ttl(memory.negative, &padded), 0);
	assert_int_equal(bid_negative_ttl(memory.negative, &debuginfo), 0);
	bid_negative_free(memory.negative);
}

static void test_repeats_grow(void **state)
{
	static const unsigned steps[] = { 10 * MINUTE, 30 * MINUTE, 2 * HOUR, 24 * HOUR, 24 * HOUR };
	struct memory memory;

	begin(&memory, 10);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		add(&memory, 1);
		assert_int_equal(ttl(&memory, 1), steps[i]);
		memory.now += steps[i];
		assert_int_equal(ttl(&memory, 1), 0);
	}
	bid_negative_free(memory.negative);
}

static void test_asking_often_does_not_grow(void **state)
{
	struct memory memory;

	begin(&memory, 10);
	for (int i = 0; i < 50; i++) {
		add(&memory, 1);
		assert_int_equal(ttl(&memory, 1), 10 * MINUTE);
		memory.now += MINUTE;
	}
	assert_int_equal(bid_negative_count(memory.negative), 1);
	bid_negative_free(memory.negative);
}

static void test_forgotten_begins_anew(void **state)
{
	struct bid_request one = elf(1);
	struct memory memory;

	begin(&memory, 10);
	add(&memory, 1);
	memory.now += HOUR;
	add(&memory, 1);
	assert_int_equal(ttl(&memory, 1), 30 * MINUTE);
	bid_negative_forget(memory.negative, &one);
	bid_negative_forget(memory.negative, &one);
	assert_int_equal(ttl(&memory, 1), 0);
	assert_int_equal(bid_negative_count(memory.negative), 0);
	add(&memory, 1);
	assert_int_equal(ttl(&memory, 1), 10 * MINUTE);
	bid_negative_free(memory.negative);
}

static void test_the_least_wanted_is_pushed_out(void **state)
{
	struct memory memory;

	begin(&memory, 3);
	add(&memory, 1);
	add(&memory, 2);
	add(&memory, 3);
	assert_true(ttl(&memory, 1) > 0);
	add(&memory, 4);
	assert_int_equal(ttl(&memory, 2), 0);
	assert_true(ttl(&memory, 1) > 0);
	assert_true(ttl(&memory, 3) > 0);
	assert_true(ttl(&memory, 4) > 0);
	assert_int_equal(bid_negative_count(memory.negative), 3);
	bid_negative_free(memory.negative);
}

static void test_counts_across_steps(void **state)
{
	struct memory memory;

	begin(&memory, 10);
	add(&memory, 1);
	memory.now += HOUR;
	add(&memory, 1);	/* until 1 h 30 */
	add(&memory, 2);	/* until 1 h 10 */
	assert_int_equal(bid_negative_count(memory.negative), 2);
	memory.now += 20 * MINUTE;
	assert_int_equal(bid_negative_count(memory.negative), 1);
	assert_int_equal(ttl(&memory, 1), 10 * MINUTE);
	memory.now += 10 * MINUTE;
	assert_int_equal(bid_negative_count(memory.negative), 0);
	bid_negative_free(memory.negative);
}

/* Many more than there is room for: the table grows, the bound holds, the latest are the ones that stay. */
static void test_bounded(void **state)
{
	enum { MAX = 5000 };
	struct memory memory;

	begin(&memory, MAX);
	for (uint64_t i = 0; i < 3 * MAX; i++)
		add(&memory, i);
	assert_int_equal(bid_negative_count(memory.negative), MAX);
	for (uint64_t i = 0; i < 3 * MAX; i++)
		assert_int_equal(ttl(&memory, i) > 0, i >= 2 * MAX);
	bid_negative_free(memory.negative);
}

static void test_boottime_goes_on(void **state)
{
	int64_t first = bid_clock_boottime(NULL);

	assert_true(first > 0);
	assert_true(bid_clock_boottime(NULL) >= first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_no_stands_for_ten_minutes),
		cmocka_unit_test(test_kinds_and_ids_are_apart),
		cmocka_unit_test(test_repeats_grow),
		cmocka_unit_test(test_asking_often_does_not_grow),
		cmocka_unit_test(test_forgotten_begins_anew),
		cmocka_unit_test(test_the_least_wanted_is_pushed_out),
		cmocka_unit_test(test_counts_across_steps),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_boottime_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
