// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include <bid/id.h>

#include "api/artifact.h"

static struct bid_id id_of(const char *hex)
{
	struct bid_id id;

	assert_int_equal(bid_id_parse_str(hex, &id), 0);
	return id;
}

static void test_id_is_lower_case_hex_of_even_length(void **state)
{
	static const char *const bad[] = { "", "a", "abc", "AB", "aB", "0x12", "ag", " ab", "ab ", "../..", "ab/cd", "ab\ncd" };
	char longest[2 * BID_ID_MAX + 3], hex[BID_ID_HEX_MAX];
	struct bid_id id = { .len = 7 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(bid_id_parse_str(bad[i], &id), -EINVAL);
	assert_int_equal(id.len, 7); /* untouched on failure */

	memset(longest, '5', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(bid_id_parse_str(longest, &id), -EINVAL);
	longest[2 * BID_ID_MAX] = '\0';
	assert_int_equal(bid_id_parse_str(longest, &id), 0);
	assert_int_equal(id.len, BID_ID_MAX);
	assert_string_equal(bid_id_format(&id, hex), longest);

	id = id_of("00ff10");
	assert_int_equal(id.len, 3);
	assert_int_equal(id.bytes[1], 255);
}

static void test_id_matches_its_aliases(void **state)
{
	static const struct {
		const char *carried, *requested;
		bool answers;
	} cases[] = {
		{ "aabb", "aabb", true },
		{ "aabb", "aabc", false },
		{ "aabb", "aabb0000", true }, /* padded to a multiple of 4 */
		{ "aabb", "aabb000000000000000000000000000000000000", true }, /* ... and to 20 */
		{ "aabb", "aabb00000000000000000000000000000000000000", false }, /* but not beyond */
		{ "aabb", "aabb0001", false },
		{ "aabb0000", "aabb", false }, /* zero bytes at the end stay */
		/* perf's 20 bytes of 32 */
		{ "00112233445566778899aabbccddeeff0011223344556677", "00112233445566778899aabbccddeeff00112233", true },
		{ "00112233445566778899aabbccddeeff0011223344556677", "00112233445566778899aabbccddeeff00112234", false },
		{ "00112233445566778899aabbccddeeff0011223344556677", "00112233445566778899aabbccddeeff001122", false },
		{ "00112233445566778899aabbccddeeff00112233", "00112233445566778899aabbccddeeff0011223344556677", false },
	};
	struct bid_id none = { 0 }, some = id_of("aabb");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bid_id carried = id_of(cases[i].carried), requested = id_of(cases[i].requested);

		assert_int_equal(bid_id_answers(&carried, &requested), cases[i].answers);
	}
	assert_false(bid_id_answers(&none, &some));
	assert_false(bid_id_answers(&some, &none));
	assert_false(bid_id_answers(&none, &none));
}

static void test_kinds_have_names(void **state)
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_SOURCE; kind++)
		assert_int_equal(bid_kind_parse(bid_kind_name((enum bid_kind)kind)), kind);
	assert_int_equal(bid_kind_parse("executable"), BID_KIND_ELF);
	assert_int_equal(bid_kind_parse("none"), BID_KIND_NONE);
	assert_int_equal(bid_kind_parse("debug"), BID_KIND_NONE); /* perf's name, not the user's */
	assert_string_equal(bid_kind_store_name(BID_KIND_DEBUGINFO), "debug");
	assert_string_equal(bid_kind_name((enum bid_kind)99), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_id_is_lower_case_hex_of_even_length),
		cmocka_unit_test(test_id_matches_its_aliases),
		cmocka_unit_test(test_kinds_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
