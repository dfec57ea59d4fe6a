// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checked files: kept for the next reader, shared by handles, released. */
#include "store_fixture.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../clock/test_clock.h"
#include "vfs/open_files.h"

enum { A = 1, B, SHORT };

static const struct {
	const char *id, *file;
} builds[] = { [A] = { ID_A, "a" }, [B] = { ID_B, "b" }, [SHORT] = { ID_SHORT, "short" } };

static void keep(struct bid_open_files *fds, const struct store_fixture *fixture, uint64_t number, struct stat *ret_st)
{
	struct bid_artifact artifact = request_for(builds[number].id, BID_KIND_ELF);
	struct bid_file file;
	struct bid_fd *fd;

	perf_adds(fixture, builds[number].file, builds[number].file, builds[number].id, "elf");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	if (ret_st)
		*ret_st = file.st;
	assert_int_equal(bid_open_files_keep(fds, number, &file, &fd), 0);
	bid_open_files_put(fds, fd);
}

static bool is_kept(struct bid_open_files *fds, const struct store_fixture *fixture, uint64_t number)
{
	struct bid_artifact artifact = request_for(builds[number].id, BID_KIND_ELF);
	struct bid_fd *fd = bid_open_files_get(fds, fixture->store, number, &artifact, NULL, NULL);

	if (fd)
		bid_open_files_put(fds, fd);
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
	struct bid_open_files *fds;
	struct stat st;

	assert_int_equal(bid_open_files_new(8, NULL, &fds), 0);
	keep(fds, fixture, A, &st);
	keep(fds, fixture, B, NULL);
	/* used within the minute */
	assert_int_equal(bid_open_files_drop(fds, NULL, is_held, &none), -1);
	assert_true(is_kept(fds, fixture, A));
	assert_int_equal(bid_open_files_drop(fds, &st, is_held, &none), -1);
	assert_false(is_kept(fds, fixture, A));
	assert_true(is_kept(fds, fixture, B));
	bid_open_files_free(fds);
}

static void test_readable_unlinked_file_is_evicted_last(void **state)
{
	struct store_fixture *fixture = *state;
	uint64_t held = A;
	struct bid_open_files *fds;
	struct stat st;
	int fd;

	assert_int_equal(bid_open_files_new(2, NULL, &fds), 0);
	keep(fds, fixture, A, &st);
	fd = bid_open_files_drop(fds, &st, is_held, &held);
	assert_true(fd >= 0);
	close(fd);
	run(fixture, "rm store/a/" ID_A "/elf");
	keep(fds, fixture, B, NULL);
	keep(fds, fixture, SHORT, NULL);
	assert_true(is_kept(fds, fixture, A));
	assert_false(is_kept(fds, fixture, B));
	/* the cache has no descriptor then */
	bid_open_files_forget(fds, A);
	assert_false(is_kept(fds, fixture, A));
	bid_open_files_free(fds);
}

static void keep_in_memory(struct bid_open_files *fds, uint64_t number)
{
	struct bid_file file = { .fd = memfd_create("unpacked", MFD_CLOEXEC), .kind = BID_KIND_ELF };
	struct bid_fd *fd;

	assert_int_equal(fstat(file.fd, &file.st), 0);
	assert_int_equal(bid_open_files_keep(fds, number, &file, &fd), 0);
	bid_open_files_put(fds, fd);
}

/* An unpacked module of a store that cannot be written. Readers without handles get it again. */
static void test_file_in_memory_is_dropped_although_held(void **state)
{
	struct store_fixture *fixture = *state;
	uint64_t held = B;
	struct bid_open_files *fds;

	assert_int_equal(bid_open_files_new(2, NULL, &fds), 0);
	keep(fds, fixture, A, NULL);
	keep_in_memory(fds, B);
	assert_true(bid_open_files_drop_memory(fds));
	assert_false(bid_open_files_drop_memory(fds));
	assert_true(is_kept(fds, fixture, A));

	keep_in_memory(fds, B);
	test_clock_advance_ms(61000);
	assert_int_equal(bid_open_files_drop(fds, NULL, is_held, &held), -1);
	assert_false(bid_open_files_drop_memory(fds));
	bid_open_files_free(fds);
}

/* Backing ids as the kernel gives them; @user counts those in use. */
static int make_id(void *user, int fd)
{
	*(unsigned *)user += 1;
	return 7;
}

static void drop_id(void *user, int id)
{
	assert_int_equal(id, 7);
	*(unsigned *)user -= 1;
}

static void ignore_id(void *user, int id)
{
	assert_int_equal(id, 7);
}

/* Open a handle of a stored build under @number; returns the backing id, or a negative errno. */
static int open_build(struct bid_open_files *fds, const struct store_fixture *fixture, uint64_t number, unsigned build,
		      struct bid_fd **ret_fd)
{
	struct bid_artifact artifact = request_for(builds[build].id, BID_KIND_ELF);
	struct bid_file file;
	struct bid_fd *fd;
	int id = 0, r;

	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	r = bid_open_files_keep(fds, number, &file, &fd);
	if (r < 0)
		return r;
	assert_int_equal(bid_open_files_open(fds, fd, &id), 0);
	bid_open_files_put(fds, fd);
	*ret_fd = fd;
	return id;
}

static void test_handles_share_file_and_backing_id(void **state)
{
	struct store_fixture *fixture = *state;
	unsigned ids = 0;
	const struct bid_backing_ids backing = { .user = &ids, .make = make_id, .drop = drop_id };
	struct bid_fd *first, *second, *other;
	struct bid_open_files *fds;
	struct stat st, open;
	uint64_t none = 0;

	assert_int_equal(bid_open_files_new(2, &backing, &fds), 0);
	keep(fds, fixture, A, &st);
	keep(fds, fixture, B, NULL);
	assert_int_equal(open_build(fds, fixture, A, A, &first), 7);
	assert_int_equal(open_build(fds, fixture, A, A, &second), 7);
	assert_ptr_equal(first, second);
	assert_int_equal(ids, 1);
	/* another file waits for the last RELEASE */
	assert_int_equal(open_build(fds, fixture, A, B, &other), -ESTALE);
	assert_int_equal(bid_open_files_drop(fds, &st, is_held, &none), -1);
	assert_true(bid_open_files_open_stat(fds, A, &open) && open.st_ino == st.st_ino);
	bid_open_files_close(fds, first, true);
	bid_open_files_close(fds, second, true);
	assert_false(bid_open_files_open_stat(fds, A, &open));
	/* the id stays for the next open, until the file goes */
	assert_int_equal(ids, 1);
	assert_int_equal(bid_open_files_drop(fds, &st, is_held, &none), -1);
	assert_int_equal(ids, 0);
	assert_int_equal(open_build(fds, fixture, A, B, &other), 7);
	/* FORGET before RELEASE */
	bid_open_files_forget(fds, A);
	assert_int_equal(open_build(fds, fixture, A, A, &first), 7);
	assert_int_equal(ids, 2);
	bid_open_files_close(fds, other, true);
	assert_int_equal(ids, 1);
	/* after the session there is no RELEASE */
	bid_open_files_free(fds);
	assert_int_equal(ids, 0);
}

static int same_id(void *user, int fd)
{
	return *(int *)user;
}

static void test_handles_of_daemon_keep_the_kernel_from_reading(void **state)
{
	struct store_fixture *fixture = *state;
	int id = -EOPNOTSUPP;
	const struct bid_backing_ids backing = { .user = &id, .make = same_id, .drop = ignore_id };
	struct bid_fd *first, *second;
	struct bid_open_files *fds;

	assert_int_equal(bid_open_files_new(2, &backing, &fds), 0);
	keep(fds, fixture, A, NULL);
	assert_int_equal(open_build(fds, fixture, A, A, &first), 0);
	id = 7;
	assert_int_equal(open_build(fds, fixture, A, A, &second), 0);
	bid_open_files_close(fds, second, false);
	bid_open_files_close(fds, first, false);
	assert_int_equal(open_build(fds, fixture, A, A, &first), 7);
	bid_open_files_close(fds, first, true);
	bid_open_files_free(fds);
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
