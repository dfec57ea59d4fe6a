// SPDX-License-Identifier: LGPL-2.1-or-later
/* Temporary files: which have a name, and how long each lives. */
#include "store_fixture.h"

#include <errno.h>

#include "../clock/test_clock.h"
#include "vfs/whiteouts.h"
#include "write/tmpfile.h"

static struct bid_tmpfiles *tmpfiles;
static struct bid_whiteouts probes;
static const struct bid_id id = { .len = 20, .bytes = { 0xaa } };

static int begin(void **state)
{
	int r = store_fixture_begin(state);

	bid_whiteouts_init(&probes);
	return r < 0 ? r : bid_tmpfiles_new(((struct store_fixture *)*state)->store, &probes, &tmpfiles);
}

static int end(void **state)
{
	bid_tmpfiles_free(tmpfiles);
	bid_whiteouts_release(&probes);
	return store_fixture_end(state);
}

/* The caller puts it. */
static struct bid_tmpfile *file(const char *dir, const char *name)
{
	struct bid_tmpfile *tmpfile;

	assert_int_equal(bid_tmpfiles_begin(tmpfiles, &id, dir, name, &tmpfile), 0);
	return tmpfile;
}

static bool has_name(const char *dir, const char *name)
{
	struct bid_tmpfile *tmpfile = bid_tmpfiles_find(tmpfiles, dir, name);
	bool has = tmpfile != NULL;

	bid_tmpfile_unref(tmpfiles, tmpfile);
	return has;
}

static bool has_number(uint32_t number)
{
	struct bid_tmpfile *tmpfile = bid_tmpfiles_find_number(tmpfiles, number);
	bool has = tmpfile != NULL;

	assert_true(!has || tmpfile->number == number);
	bid_tmpfile_unref(tmpfiles, tmpfile);
	return has;
}

static void test_unlinked_file_lives_until_its_last_close(void **state)
{
	struct bid_tmpfile *handle = file("a", "elf"), *next;
	uint32_t number = handle->number;

	assert_true(has_name("a", "elf") && has_number(number));
	assert_int_equal(bid_tmpfiles_begin(tmpfiles, &id, "a", "elf", &next), -EEXIST);
	bid_tmpfile_remove_name(tmpfiles, handle);
	bid_tmpfile_remove_name(tmpfiles, handle);
	assert_true(!has_name("a", "elf") && has_number(number));
	/* the name is free, the number is not */
	next = file("a", "elf");
	assert_true(next->number != number && has_name("a", "elf"));
	bid_tmpfile_unref(tmpfiles, next);
	assert_true(has_name("a", "elf"));
	assert_ptr_equal(bid_tmpfile_ref(tmpfiles, handle), handle);
	bid_tmpfile_unref(tmpfiles, handle);
	assert_true(bid_written_file_fd(handle->file) >= 0 && has_number(number));
	bid_tmpfile_unref(tmpfiles, handle);
	assert_false(has_number(number));
}

static void test_flush_of_the_only_writer_gets_the_error(void **state)
{
	struct bid_tmpfile *tmpfile = file("a", "elf");

	bid_tmpfile_open(tmpfiles, tmpfile, 7);
	assert_int_equal(bid_tmpfile_flush(tmpfiles, tmpfile, 7), 0); /* empty */
	assert_int_equal(bid_written_file_write(tmpfile->file, "text", 4, 0), 0);
	assert_int_equal(bid_tmpfile_flush(tmpfiles, tmpfile, 8), 0);
	assert_int_equal(bid_tmpfile_flush(tmpfiles, tmpfile, 7), -EINVAL); /* "a" is no directory of a build */
	bid_tmpfile_open(tmpfiles, tmpfile, 7);
	assert_int_equal(bid_tmpfile_flush(tmpfiles, tmpfile, 7), 0);
	assert_false(bid_tmpfile_close(tmpfiles, tmpfile));
	assert_true(bid_tmpfile_close(tmpfiles, tmpfile));
	assert_true(has_name("a", "elf"));
	bid_tmpfile_last_close(tmpfiles, tmpfile);
	assert_false(has_name("a", "elf"));
	bid_tmpfile_unref(tmpfiles, tmpfile);
}

static void test_sweep_drops_files_without_writer_for_an_hour(void **state)
{
	struct bid_tmpfile *written = file("a", ".elf.x"), *idle = file("a", ".elf.y");

	bid_tmpfile_open(tmpfiles, written, 7);
	bid_tmpfile_unref(tmpfiles, idle);
	test_clock_advance_ms(3500 * 1000);
	bid_tmpfiles_sweep(tmpfiles);
	assert_true(bid_tmpfiles_has_in(tmpfiles, "a", false));
	test_clock_advance_ms(200 * 1000);
	bid_tmpfiles_sweep(tmpfiles);
	assert_false(has_name("a", ".elf.y"));
	assert_true(has_name("a", ".elf.x"));
	assert_true(bid_tmpfile_close(tmpfiles, written));
	bid_tmpfile_unref(tmpfiles, written);
}

static void test_directory_waits_for_its_writer(void **state)
{
	struct bid_tmpfile *a = file("a", "elf"), *b = file("b", ".elf.x");

	bid_tmpfile_open(tmpfiles, b, 1);
	assert_true(bid_tmpfiles_has_in(tmpfiles, "b", true) && !bid_tmpfiles_has_in(tmpfiles, "a", true));
	bid_tmpfiles_unname_in(tmpfiles, "b");
	assert_true(!has_name("b", ".elf.x") && has_name("a", "elf") && has_number(b->number));
	assert_false(bid_tmpfiles_has_in(tmpfiles, "b", true));
	assert_true(bid_tmpfile_close(tmpfiles, b));
	bid_tmpfile_unref(tmpfiles, a);
	bid_tmpfile_unref(tmpfiles, b);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_unlinked_file_lives_until_its_last_close),
		TEST(test_flush_of_the_only_writer_gets_the_error),
		TEST(test_sweep_drops_files_without_writer_for_an_hour),
		TEST(test_directory_waits_for_its_writer),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
