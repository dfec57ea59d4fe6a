// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files that changed just now are checked again, and reported once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../small_elf.h"
#include "disk/check_cache.h"

static const uint8_t one[SMALL_ELF_ID_LEN] = { 1 }, two[SMALL_ELF_ID_LEN] = { 2 };

static void fill(int fd, const uint8_t id[static SMALL_ELF_ID_LEN])
{
	struct small_elf elf = small_elf(id);

	assert_int_equal(pwrite(fd, &elf, sizeof(elf), 0), sizeof(elf));
}

/* Open a cache and a file with the id 1. */
static int open_file(struct bid_check_cache **ret_check_cache, struct stat *ret_st)
{
	int fd = memfd_create("identity", MFD_CLOEXEC);

	assert_int_equal(bid_check_cache_new(ret_check_cache), 0);
	assert_true(fd >= 0);
	fill(fd, one);
	assert_int_equal(fstat(fd, ret_st), 0);
	return fd;
}

static void test_file_changed_just_now_is_read_again_and_reported_once(void **state)
{
	struct bid_check check;
	struct bid_check_cache *check_cache;
	struct stat st;
	int fd;

	fd = open_file(&check_cache, &st);
	assert_false(bid_check_cache_log_once(check_cache, &st));
	/* a time that is still to come is never old enough to be trusted */
	st.st_ctim.tv_sec += 1000000;
	assert_int_equal(bid_check_cache_get(check_cache, fd, &st, false, &check), 0);
	assert_int_equal(check.id.bytes[0], 1);
	assert_true(bid_check_cache_log_once(check_cache, &st));
	fill(fd, two);
	assert_int_equal(bid_check_cache_get(check_cache, fd, &st, true, &check), 0);
	assert_int_equal(check.id.bytes[0], 2);
	assert_false(bid_check_cache_log_once(check_cache, &st));

	/* the check of an old file is remembered */
	st.st_ctim.tv_sec = 1000;
	assert_int_equal(bid_check_cache_get(check_cache, fd, &st, false, &check), 0);
	assert_true(bid_check_cache_log_once(check_cache, &st));
	fill(fd, one);
	assert_int_equal(bid_check_cache_get(check_cache, fd, &st, false, &check), 0);
	assert_int_equal(check.id.bytes[0], 2);
	assert_false(bid_check_cache_log_once(check_cache, &st));
	bid_check_cache_free(check_cache);
	close(fd);
}

static void test_file_without_symbols_is_remembered_until_it_changes(void **state)
{
	struct bid_check check;
	struct bid_check_cache *check_cache;
	struct stat st, fresh;
	int fd;

	fd = open_file(&check_cache, &st);
	fresh = st;
	fresh.st_ctim.tv_sec += 1000000;
	st.st_ctim.tv_sec = 1000;
	assert_int_equal(bid_check_cache_get(check_cache, fd, &st, false, &check), 0);
	assert_false(bid_check_cache_is_underivable(check_cache, &st, BID_KIND_KALLSYMS));
	bid_check_cache_set_underivable(check_cache, &st, BID_KIND_KALLSYMS);
	assert_true(bid_check_cache_is_underivable(check_cache, &st, BID_KIND_KALLSYMS));
	assert_false(bid_check_cache_is_underivable(check_cache, &st, BID_KIND_PROBES));
	/* a second look, for the sections */
	assert_int_equal(bid_check_cache_get(check_cache, fd, &st, true, &check), 0);
	assert_true(bid_check_cache_is_underivable(check_cache, &st, BID_KIND_KALLSYMS));
	st.st_size++;
	assert_false(bid_check_cache_is_underivable(check_cache, &st, BID_KIND_KALLSYMS));
	/* a file that may still change is never remembered */
	assert_int_equal(bid_check_cache_get(check_cache, fd, &fresh, false, &check), 0);
	bid_check_cache_set_underivable(check_cache, &fresh, BID_KIND_KALLSYMS);
	assert_false(bid_check_cache_is_underivable(check_cache, &fresh, BID_KIND_KALLSYMS));
	bid_check_cache_free(check_cache);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_changed_just_now_is_read_again_and_reported_once),
		cmocka_unit_test(test_file_without_symbols_is_remembered_until_it_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
