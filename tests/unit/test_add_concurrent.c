// SPDX-License-Identifier: LGPL-2.1-or-later
/* Additions while others add and remove the same file, which may vanish between two steps. */
#include "api/written_file.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Number of times that another process adds the file @theirs first, and removes it again. */
static unsigned rivals;
static char theirs[96];

/* In the place of the C library's. */
int linkat(int from, const char *path, int to, const char *name, int flags)
{
	bool rival = rivals > 0 && strcmp(name, "elf") == 0 && syscall(SYS_linkat, AT_FDCWD, theirs, to, name, 0) == 0;
	int r = (int)syscall(SYS_linkat, from, path, to, name, flags), error = errno;

	if (rival) {
		rivals--;
		assert_int_equal(unlinkat(to, name, 0), 0);
	}
	errno = error;
	return r;
}

static void begin(const struct store_fixture *fixture, unsigned times)
{
	run(fixture, "cp a theirs");
	snprintf(theirs, sizeof(theirs), "%s/theirs", fixture->directory);
	rivals = times;
}

static int add(const struct store_fixture *fixture, enum bid_link link)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/a", fixture->directory);
	return bid_store_add(fixture->store, path, link, &added);
}

static void is_stored(const struct store_fixture *fixture)
{
	assert_int_equal(rivals, 0);
	run(fixture, "cmp a store/.build-id/aa/%s/elf", ID_A + 2);
}

static void test_vanished_link_is_made_again(void **state)
{
	begin(*state, 2);
	assert_int_equal(add(*state, BID_LINK_HARD), 0);
	is_stored(*state);
}

static void test_vanished_copy_is_made_again(void **state)
{
	begin(*state, 2);
	assert_int_equal(add(*state, BID_LINK_COPY), 0);
	is_stored(*state);
}

static void test_vanished_staged_file_is_made_again(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	struct bid_written_file *written;
	char path[96];

	assert_int_equal(bid_written_file_new(fixture->store, &written), 0);
	snprintf(path, sizeof(path), "%s/a", fixture->directory);
	run(fixture, "cp a /proc/%d/fd/%d", getpid(), bid_written_file_fd(written));
	begin(fixture, 2);
	assert_int_equal(bid_written_file_publish(written, &artifact, "usr/bin/a/" ID_A), 0);
	is_stored(fixture);
	bid_written_file_free(written);
}

static void test_endless_race_is_reported(void **state)
{
	const struct store_fixture *fixture = *state;

	begin(fixture, 1000);
	assert_int_equal(add(fixture, BID_LINK_COPY), -EBADMSG);
	rivals = 0;
	run(fixture, "test -z \"$(find store -name elf)\"");
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_vanished_link_is_made_again),
		TEST(test_vanished_copy_is_made_again),
		TEST(test_vanished_staged_file_is_made_again),
		TEST(test_endless_race_is_reported),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
