// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checked files: kept for the next reader, shared by handles, released. */
#include "store_fixture.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../clock/test_clock.h"
#include "vfs/fd_cache.h"

enum { A = 1, B, SHORT };

static const struct {
	const char *id, *file;
} builds[] = { [A] = { ID_A, "a" }, [B] = { ID_B, "b" }, [SHORT] = { ID_SHORT, "short" } };

static void keep(struct bid_fd_cache *cache, const struct store_fixture *fixture, uint64_t number, struct stat *ret_st)
{
	struct bid_artifact artifact = request_for(builds[number].id, BID_KIND_ELF);
	struct bid_file file;
	struct bid_cached_fd *cached;

	perf_adds(fixture, builds[number].file, builds[number].file, builds[number].id, "elf");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	if (ret_st)
		*ret_st = file.st;
	assert_int_equal(bid_fd_cache_insert(cache, number, &file, &cached), 0);
	bid_fd_cache_unref(cache, cached);
}

static bool is_kept(struct bid_fd_cache *cache, uint64_t number)
{
	struct bid_artifact artifact = request_for(builds[number].id, BID_KIND_ELF);
	struct bid_cached_fd *cached = bid_fd_cache_find(cache, number, &artifact, NULL, NULL);

	if (cached)
		bid_fd_cache_unref(cache, cached);
	return cached;
}

/* The kernel. */
struct kernel {
	uint64_t readable; /* the only inode to be read without a handle */
	int id; /* next backing id, or a negative errno */
	unsigned ids; /* backing ids in use */
};

static int make_id(void *user, int fd)
{
	struct kernel *kernel = user;

	kernel->ids += kernel->id > 0;
	return kernel->id;
}

static void drop_id(void *user, int id)
{
	struct kernel *kernel = user;

	assert_int_equal(id, kernel->id);
	kernel->ids--;
}

static bool may_be_read(void *user, uint64_t number)
{
	const struct kernel *kernel = user;

	return kernel->readable == number;
}

static const struct bid_fd_cache_ops ops = { .make_id = make_id, .drop_id = drop_id, .may_be_read = may_be_read };

static void test_unused_descriptor_is_closed(void **state)
{
	struct store_fixture *fixture = *state;
	struct kernel kernel = { 0 };
	struct bid_fd_cache *cache;
	struct stat st;

	assert_int_equal(bid_fd_cache_new(fixture->store, 8, &ops, &kernel, &cache), 0);
	keep(cache, fixture, A, &st);
	keep(cache, fixture, B, NULL);
	/* used within the minute */
	assert_int_equal(bid_fd_cache_drop(cache, NULL), -1);
	assert_true(is_kept(cache, A));
	assert_int_equal(bid_fd_cache_drop(cache, &st), -1);
	assert_false(is_kept(cache, A));
	assert_true(is_kept(cache, B));
	bid_fd_cache_free(cache);
}

static void test_readable_unlinked_file_is_evicted_last(void **state)
{
	struct store_fixture *fixture = *state;
	struct kernel kernel = { .readable = A };
	struct bid_fd_cache *cache;
	struct stat st;
	int fd;

	assert_int_equal(bid_fd_cache_new(fixture->store, 2, &ops, &kernel, &cache), 0);
	keep(cache, fixture, A, &st);
	fd = bid_fd_cache_drop(cache, &st);
	assert_true(fd >= 0);
	close(fd);
	run(fixture, "rm store/a/" ID_A "/elf");
	keep(cache, fixture, B, NULL);
	keep(cache, fixture, SHORT, NULL);
	assert_true(is_kept(cache, A));
	assert_false(is_kept(cache, B));
	/* the cache has no descriptor then */
	bid_fd_cache_forget(cache, A);
	assert_false(is_kept(cache, A));
	bid_fd_cache_free(cache);
}

static void keep_in_memory(struct bid_fd_cache *cache, uint64_t number)
{
	struct bid_file file = { .fd = memfd_create("unpacked", MFD_CLOEXEC), .kind = BID_KIND_ELF };
	struct bid_cached_fd *cached;

	assert_int_equal(fstat(file.fd, &file.st), 0);
	assert_int_equal(bid_fd_cache_insert(cache, number, &file, &cached), 0);
	bid_fd_cache_unref(cache, cached);
}

/* An unpacked module of a store that cannot be written. Readers without handles get it again. */
static void test_file_in_memory_is_dropped_although_held(void **state)
{
	struct store_fixture *fixture = *state;
	struct kernel kernel = { .readable = B };
	struct bid_fd_cache *cache;

	assert_int_equal(bid_fd_cache_new(fixture->store, 2, &ops, &kernel, &cache), 0);
	keep(cache, fixture, A, NULL);
	keep_in_memory(cache, B);
	assert_true(bid_fd_cache_drop_memory(cache));
	assert_false(bid_fd_cache_drop_memory(cache));
	assert_true(is_kept(cache, A));

	keep_in_memory(cache, B);
	test_clock_advance_ms(61000);
	assert_int_equal(bid_fd_cache_drop(cache, NULL), -1);
	assert_false(bid_fd_cache_drop_memory(cache));
	bid_fd_cache_free(cache);
}

/* Open a handle of a stored build under @number; returns the backing id, or a negative errno. */
static int open_build(struct bid_fd_cache *cache, const struct store_fixture *fixture, uint64_t number, unsigned build,
		      struct bid_cached_fd **ret_cached)
{
	struct bid_artifact artifact = request_for(builds[build].id, BID_KIND_ELF);
	struct bid_file file;
	struct bid_cached_fd *cached;
	int id = 0, r;

	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	r = bid_fd_cache_insert(cache, number, &file, &cached);
	if (r < 0)
		return r;
	assert_int_equal(bid_fd_cache_open_handle(cache, cached, &id), 0);
	bid_fd_cache_unref(cache, cached);
	*ret_cached = cached;
	return id;
}

static void test_handles_share_file_and_backing_id(void **state)
{
	struct store_fixture *fixture = *state;
	struct kernel kernel = { .id = 7 };
	struct bid_cached_fd *first, *second, *other;
	struct bid_fd_cache *cache;
	struct stat st, open;

	assert_int_equal(bid_fd_cache_new(fixture->store, 2, &ops, &kernel, &cache), 0);
	keep(cache, fixture, A, &st);
	keep(cache, fixture, B, NULL);
	assert_int_equal(open_build(cache, fixture, A, A, &first), 7);
	assert_int_equal(open_build(cache, fixture, A, A, &second), 7);
	assert_ptr_equal(first, second);
	assert_int_equal(kernel.ids, 1);
	/* another file waits for the last RELEASE */
	assert_int_equal(open_build(cache, fixture, A, B, &other), -ESTALE);
	assert_int_equal(bid_fd_cache_drop(cache, &st), -1);
	assert_true(bid_fd_cache_stat(cache, A, &open) && open.st_ino == st.st_ino);
	bid_fd_cache_close_handle(cache, first, true);
	bid_fd_cache_close_handle(cache, second, true);
	assert_false(bid_fd_cache_stat(cache, A, &open));
	/* the id stays for the next open, until the file goes */
	assert_int_equal(kernel.ids, 1);
	assert_int_equal(bid_fd_cache_drop(cache, &st), -1);
	assert_int_equal(kernel.ids, 0);
	assert_int_equal(open_build(cache, fixture, A, B, &other), 7);
	/* FORGET before RELEASE */
	bid_fd_cache_forget(cache, A);
	assert_int_equal(open_build(cache, fixture, A, A, &first), 7);
	assert_int_equal(kernel.ids, 2);
	bid_fd_cache_close_handle(cache, other, true);
	assert_int_equal(kernel.ids, 1);
	/* after the session there is no RELEASE */
	bid_fd_cache_free(cache);
	assert_int_equal(kernel.ids, 0);
}

static void test_handles_of_daemon_keep_the_kernel_from_reading(void **state)
{
	struct store_fixture *fixture = *state;
	struct kernel kernel = { .id = -EOPNOTSUPP };
	struct bid_cached_fd *first, *second;
	struct bid_fd_cache *cache;

	assert_int_equal(bid_fd_cache_new(fixture->store, 2, &ops, &kernel, &cache), 0);
	keep(cache, fixture, A, NULL);
	assert_int_equal(open_build(cache, fixture, A, A, &first), 0);
	kernel.id = 7;
	assert_int_equal(open_build(cache, fixture, A, A, &second), 0);
	bid_fd_cache_close_handle(cache, second, false);
	bid_fd_cache_close_handle(cache, first, false);
	assert_int_equal(open_build(cache, fixture, A, A, &first), 7);
	bid_fd_cache_close_handle(cache, first, true);
	bid_fd_cache_free(cache);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_unused_descriptor_is_closed),
		TEST(test_readable_unlinked_file_is_evicted_last),
		TEST(test_file_in_memory_is_dropped_although_held),
		TEST(test_handles_share_file_and_backing_id),
		TEST(test_handles_of_daemon_keep_the_kernel_from_reading),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
