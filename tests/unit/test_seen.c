// SPDX-License-Identifier: LGPL-2.1-or-later
/* The cache of examined files, and its expiry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/seen_files.h"

static void put(struct ctl_seen *seen, dev_t dev, ino_t ino)
{
	assert_int_equal(ctl_seen_put(seen, &(struct ctl_seen_file){ .dev = dev, .ino = ino, .pass = (unsigned)ino }), 0);
}

static void test_seen_file_is_found_until_replaced(void **state)
{
	struct ctl_seen seen = { 0 };

	assert_null(ctl_seen_find(&seen, 1, 1));
	for (ino_t ino = 1; ino <= 5000; ino++) {
		put(&seen, 1, ino);
		put(&seen, 2, ino);
	}
	for (ino_t ino = 1; ino <= 5000; ino++) {
		assert_int_equal(ctl_seen_find(&seen, 1, ino)->pass, ino);
		assert_int_equal(ctl_seen_find(&seen, 2, ino)->dev, 2);
		assert_null(ctl_seen_find(&seen, 3, ino));
	}
	/* replaces the entry */
	assert_int_equal(ctl_seen_put(&seen, &(struct ctl_seen_file){ .dev = 1, .ino = 7, .unread = true }), 0);
	assert_true(ctl_seen_find(&seen, 1, 7)->unread);
	ctl_seen_release(&seen);
	assert_null(ctl_seen_find(&seen, 1, 7));
}

/* With any number of new entries, those in use stay, and memory does not grow. */
static void test_cache_is_bounded(void **state)
{
	struct ctl_seen seen = { 0 };

	put(&seen, 1, 1);
	for (ino_t ino = 2; ino < 20 * CTL_SEEN_MAX; ino++) {
		put(&seen, 1, ino);
		if (ino % 1000 == 0)
			assert_non_null(ctl_seen_find(&seen, 1, 1));
		assert_true(seen.young.n <= CTL_SEEN_MAX && seen.old.n <= CTL_SEEN_MAX);
		assert_true(seen.young.size <= 4 * CTL_SEEN_MAX);
	}
	assert_null(ctl_seen_find(&seen, 1, 2));
	ctl_seen_release(&seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seen_file_is_found_until_replaced),
		cmocka_unit_test(test_cache_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
