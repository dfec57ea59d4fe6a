// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copies of files during writes: the copy is of one moment, or refused. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/content_key.h"
#include "api/remove.h"
#include "base/cleanup.h"
#include "base/io.h"

/* How often the file @moving is written to in the middle of its copying. */
static unsigned moves;
static char moving[96];

/* Overwrite the tail, which no header describes, so that the change is invisible. */
static void move(char with)
{
	bid_auto_fd int fd = open(moving, O_WRONLY | O_CLOEXEC);
	char tail[8192];

	memset(tail, with, sizeof(tail));
	assert_true(fd >= 0 && lseek(fd, -(off_t)sizeof(tail), SEEK_END) >= 0);
	assert_int_equal(syscall(SYS_write, fd, tail, sizeof(tail)), (long)sizeof(tail));
}

/* Replace the C library's function: copy page by page, and change a page of the tail during its copy. */
ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t len, unsigned flags)
{
	ssize_t n = syscall(SYS_copy_file_range, in, in_offset, out, out_offset, len < 4096 ? len : 4096, flags);
	off_t left = lseek(in, 0, SEEK_END) - *in_offset;

	if (moves > 0 && n > 0 && left >= 4096 && left < 8192)
		move((char)('a' + moves-- % 26));
	return n;
}

static void begin(const struct store_fixture *fixture, const char *program)
{
	run(fixture, "cp %s moving && head -c 16384 /dev/zero >> moving", program);
	snprintf(moving, sizeof(moving), "%s/moving", fixture->directory);
	moves = 0;
}

static int add(const struct store_fixture *fixture)
{
	struct bid_added added;

	return bid_store_add(fixture->store, moving, BID_LINK_COPY, &added);
}

static void is_stored(const struct store_fixture *fixture)
{
	run(fixture, "cmp moving store/.build-id/aa/%s/elf", ID_A + 2);
}

static void test_file_changed_once_is_copied_again(void **state)
{
	const struct store_fixture *fixture = *state;

	begin(fixture, "a");
	moves = 1;
	assert_int_equal(add(fixture), 0);
	is_stored(fixture);
}

static void test_changing_file_is_refused(void **state)
{
	const struct store_fixture *fixture = *state;

	begin(fixture, "a");
	moves = 100;
	assert_int_equal(add(fixture), -EAGAIN);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	run(fixture, "test -z \"$(find store -name elf)\"");
}

static void test_file_open_for_writing_is_refused(void **state)
{
	const struct store_fixture *fixture = *state;
	int fd;

	begin(fixture, "a");
	fd = open(moving, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(add(fixture), -EAGAIN);
	close(fd);
	assert_int_equal(add(fixture), 0);
	is_stored(fixture);
}

static void test_update_copies_one_state(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_added added;
	bool replaced;

	begin(fixture, "a");
	assert_int_equal(add(fixture), 0);
	moves = 100;
	move('z');
	assert_int_equal(bid_store_update(fixture->store, moving, BID_LINK_AUTO, &added, &replaced), -EAGAIN);
	moves = 1;
	assert_int_equal(bid_store_update(fixture->store, moving, BID_LINK_AUTO, &added, &replaced), 0);
	assert_true(replaced);
	is_stored(fixture);
}

static void test_file_without_id_copies_one_state(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_content_key key;

	run(fixture, "objcopy -R .note.gnu.build-id a none");
	begin(fixture, "none");
	moves = 100;
	assert_int_equal(bid_store_keep_content_key(fixture->store, moving, &key), -EAGAIN);
	moves = 1;
	assert_int_equal(bid_store_keep_content_key(fixture->store, moving, &key), 0);
	run(fixture, "cmp moving 'store/%s'", key.stored);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_file_changed_once_is_copied_again), TEST(test_changing_file_is_refused),
		TEST(test_file_open_for_writing_is_refused),  TEST(test_update_copies_one_state),
		TEST(test_file_without_id_copies_one_state),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
