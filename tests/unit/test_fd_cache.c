// SPDX-License-Identifier: LGPL-2.1-or-later
/* Descriptors kept for the next reader, and their release. */
#include "store_fixture.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../clock/test_clock.h"
#include "vfs/fd_cache.h"

enum { A = 1, B, SHORT };

static const struct {
	const char *id, *file;
} builds[] = { [A] = { ID_A, "a" }, [B] = { ID_B, "b" }, [SHORT] = { ID_SHORT, "short" } };

static void keep(struct bid_fd_cache *fds, const struct store_fixture *fixture, uint64_t number, struct stat *ret_st)
{
	struct bid_request request = request_for(builds[number].id, BID_KIND_ELF);
	struct bid_file file;
	struct bid_fd *fd;

	perf_adds(fixture, builds[number].file, builds[number].file, builds[number].id, "elf");
	assert_int_equal(bid_store_find(fixture->store, &request, &file), 0);
	if (ret_st)
		*ret_st = file.st;
	fd = bid_fd_cache_keep(fds, number, &file);
	assert_non_null(fd);
	bid_fd_cache_put(fds, fd);
}

static bool is_kept(struct bid_fd_cache *fds, const struct store_fixture *fixture, uint64_t number)
{
	struct bid_request request = request_for(builds[number].id, BID_KIND_ELF);
	struct bid_fd *fd = bid_fd_cache_get(fds, fixture->store, number, &request, NULL, NULL);

	if (fd)
		bid_fd_cache_put(fds, fd);
	return fd;
}

/* @user is the number of the only readable inode. */
static bool is_held(void *user, uint64_t number)
{
	return *(const uint64_t *)user == number;
}

static void test_unused_descriptor_is_closed(void **state)
{
	struct store_fixture *fixture = *state;
	uint64_t none = 0;
	struct bid_fd_cache *fds;
	struct stat st;

	assert_int_equal(bid_fd_cache_new(8, &fds), 0);
	keep(fds, fixture, A, &st);
	keep(fds, fixture, B, NULL);
	/* used within the minute */
	assert_int_equal(bid_fd_cache_drop(fds, NULL, is_held, &none), -1);
	assert_true(is_kept(fds, fixture, A));
	assert_int_equal(bid_fd_cache_drop(fds, &st, is_held, &none), -1);
	assert_false(is_kept(fds, fixture, A));
	assert_true(is_kept(fds, fixture, B));
	bid_fd_cache_free(fds);
}

static void test_readable_unlinked_file_is_evicted_last(void **state)
{
	struct store_fixture *fixture = *state;
	uint64_t held = A;
	struct bid_fd_cache *fds;
	struct stat st;
	int fd;

	assert_int_equal(bid_fd_cache_new(2, &fds), 0);
	keep(fds, fixture, A, &st);
	fd = bid_fd_cache_drop(fds, &st, is_held, &held);
	assert_true(fd >= 0);
	close(fd);
	run(fixture, "rm store/a/" ID_A "/elf");
	keep(fds, fixture, B, NULL);
	keep(fds, fixture, SHORT, NULL);
	assert_true(is_kept(fds, fixture, A));
	assert_false(is_kept(fds, fixture, B));
	/* the cache has no descriptor then */
	bid_fd_cache_forget(fds, A);
	assert_false(is_kept(fds, fixture, A));
	bid_fd_cache_free(fds);
}

static void keep_in_memory(struct bid_fd_cache *fds, uint64_t number)
{
	struct bid_file file = { .fd = memfd_create("unpacked", MFD_CLOEXEC), .kind = BID_KIND_ELF };

	assert_int_equal(fstat(file.fd, &file.st), 0);
	bid_fd_cache_put(fds, bid_fd_cache_keep(fds, number, &file));
}

/* An unpacked module of a store that cannot be written. Readers without handles get it again. */
static void test_file_in_memory_is_dropped_although_held(void **state)
{
	struct store_fixture *fixture = *state;
	uint64_t held = B;
	struct bid_fd_cache *fds;

	assert_int_equal(bid_fd_cache_new(2, &fds), 0);
	keep(fds, fixture, A, NULL);
	keep_in_memory(fds, B);
	assert_true(bid_fd_cache_drop_memory(fds));
	assert_false(bid_fd_cache_drop_memory(fds));
	assert_true(is_kept(fds, fixture, A));

	keep_in_memory(fds, B);
	test_clock_advance_ms(61000);
	assert_int_equal(bid_fd_cache_drop(fds, NULL, is_held, &held), -1);
	assert_false(bid_fd_cache_drop_memory(fds));
	bid_fd_cache_free(fds);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_unused_descriptor_is_closed),
		TEST(test_readable_unlinked_file_is_evicted_last),
		TEST(test_file_in_memory_is_dropped_although_held),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
