// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"

static void test_growth_by_one_keeps_elements(void **state)
{
	size_t room = 0;
	int *numbers = NULL;

	for (int n = 0; n < 1000; n++) {
		assert_int_equal(bid_array_grow(numbers, (size_t)n, room), 0);
		assert_true(room > (size_t)n);
		numbers[n] = n;
	}
	for (int n = 0; n < 1000; n++)
		assert_int_equal(numbers[n], n);
	free(numbers);
}

static void test_growth_by_many_keeps_elements(void **state)
{
	char *text = NULL;
	size_t room = 0;

	assert_int_equal(bid_array_reserve(text, 0, 1000, room), 0);
	assert_true(room >= 1000);
	memset(text, 'x', 1000);
	/* there already */
	assert_int_equal(bid_array_reserve(text, 500, 500, room), 0);
	assert_int_equal(room, 1024);
	free(text);
}

static void test_failed_growth_keeps_the_array(void **state)
{
	long *words = NULL, *before;
	size_t room = 0, first;

	assert_int_equal(bid_array_grow(words, 0, room), 0);
	words[0] = 77;
	before = words;
	first = room;
	assert_int_equal(bid_array_reserve(words, 1, SIZE_MAX, room), -ENOMEM);
	assert_ptr_equal(words, before);
	assert_int_equal(room, first);
	assert_int_equal(words[0], 77);
	free(words);
}

static void test_appended_strings_end_with_null(void **state)
{
	char **strings = NULL;

	assert_int_equal(bid_strings_append(&strings, NULL), -ENOMEM);
	assert_null(strings);
	assert_int_equal(bid_strings_append(&strings, strdup("a")), 0);
	assert_int_equal(bid_strings_append(&strings, strdup("b")), 0);
	assert_int_equal(bid_strings_append(&strings, NULL), -ENOMEM);
	assert_string_equal(strings[0], "a");
	assert_string_equal(strings[1], "b");
	assert_null(strings[2]);
	bid_strings_free(strings);
	bid_strings_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth_by_one_keeps_elements),
		cmocka_unit_test(test_growth_by_many_keeps_elements),
		cmocka_unit_test(test_failed_growth_keeps_the_array),
		cmocka_unit_test(test_appended_strings_end_with_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
