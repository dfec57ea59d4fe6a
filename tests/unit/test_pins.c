// SPDX-License-Identifier: LGPL-2.1-or-later
/* The digests of what was fetched first: checked if they can be read, refused if not, and none is lost beside a rewrite. */
#include "store_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/io.h"
#include "disk/history/journal.h"
#include "disk/history/pins.h"
#include "disk/store.h"

static uint64_t bytes_read;
static bool no_memory;
static int read_error;
static void (*before_write)(void); /* called once, by the next write(2) */

/* In the place of the C library's. */
ssize_t pread(int fd, void *data, size_t len, off_t offset)
{
	ssize_t n = syscall(SYS_pread64, fd, data, len, offset);

	bytes_read += n > 0 ? (uint64_t)n : 0;
	if (read_error) {
		errno = read_error;
		return -1;
	}
	return n;
}

void *reallocarray(void *array, size_t n, size_t size)
{
	return no_memory ? NULL : realloc(array, n * size);
}

ssize_t write(int fd, const void *data, size_t len)
{
	void (*before)(void) = before_write;

	before_write = NULL;
	if (before)
		before();
	return syscall(SYS_write, fd, data, len);
}

static int fetch(const struct store_scene *scene, const char *name)
{
	struct bid_request request = request_for(ID_A, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	struct bid_txn *txn = NULL;
	char path[96], *data;
	size_t len;
	int fd, r;

	snprintf(path, sizeof(path), "%s/%s", scene->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(bid_read_file(fd, 1 << 20, &data, &len), 0);
	close(fd);
	assert_int_equal(bid_txn_begin(scene->store, &request, &txn), 0);
	assert_int_equal(bid_txn_write(txn, data, len), 0);
	r = bid_txn_commit(txn, &(struct bid_origin){ .how = "fetched" }, &file);
	bid_file_release(&file);
	bid_txn_free(txn);
	free(data);
	run(scene, "rm -rf 'store/[debuginfod]' store/.build-id store/.bidfs/record");
	return r;
}

static struct bid_request numbered(uint64_t number)
{
	struct bid_request request = { .kind = BID_KIND_ELF };

	assert_int_equal(bid_id_from_bytes(&number, sizeof(number), &request.id), 0);
	return request;
}

static void test_commits_read_only_what_was_appended(void **state)
{
	struct store_scene *scene = *state;
	uint64_t before;

	for (unsigned i = 0; i < 10000; i++) {
		struct bid_request request = numbered(i);

		assert_int_equal(bid_pin_set(scene->store->pins, &request, (XXH128_hash_t){ .low64 = i }), 0);
	}
	assert_int_equal(fetch(scene, "a"), 0);
	before = bytes_read;
	for (int i = 0; i < 5; i++)
		assert_int_equal(fetch(scene, "a"), 0);
	/* the files themselves are read, and not 5 times 400 KB */
	assert_in_range(bytes_read - before, 1, 400000);
	for (unsigned i = 0; i < 10000; i++) {
		struct bid_request request = numbered(i);
		XXH128_hash_t digest;

		assert_int_equal(bid_pin_get(scene->store->pins, &request, &digest), 0);
		assert_int_equal(digest.low64, i);
	}
}

static void test_digests_that_cannot_be_read_refuse_every_file(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_for(ID_A, BID_KIND_ELF);
	XXH128_hash_t digest;
	char path[96];

	assert_int_equal(fetch(scene, "a"), 0);
	snprintf(path, sizeof(path), "%s", bid_store_path(scene->store));
	bid_store_free(scene->store);
	assert_int_equal(bid_store_open(path, BID_STORE_WRITE, &scene->store), 0);
	no_memory = true;
	assert_int_equal(bid_pin_get(scene->store->pins, &request, &digest), -ENOMEM);
	no_memory = false;
	bid_store_free(scene->store);
	assert_int_equal(bid_store_open(path, BID_STORE_WRITE, &scene->store), 0);
	read_error = EIO;
	assert_int_equal(bid_pin_get(scene->store->pins, &request, &digest), -EIO);
	read_error = 0;
	assert_int_equal(fetch(scene, "a.stripped"), -ESTALE);
	assert_int_equal(fetch(scene, "a"), 0);
}

static bool taken[2000];
static struct bid_journal one, other;
static void (*in_rewrite)(void);

static void take(void *user, const void *payload)
{
	uint32_t number;

	memcpy(&number, payload, sizeof(number));
	taken[number] = true;
}

static void restart(void *user)
{
	memset(taken, 0, sizeof(taken));
}

/* Two records are worth keeping; and what happens at this moment may be something else. */
static int each(void *user, bid_journal_emit_fn emit, void *emitter)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < 2; i++)
		r = emit(emitter, &i);
	if (in_rewrite)
		in_rewrite();
	return r;
}

static size_t count(void *user)
{
	return 2;
}

static const struct bid_journal_ops ops = {
	.path = ".bidfs/journal",
	.magic = "bidtest",
	.payload = sizeof(uint32_t),
	.take = take,
	.restart = restart,
	.each = each,
	.count = count,
};

static void append(struct bid_journal *journal, uint32_t number)
{
	assert_int_equal(bid_journal_append(journal, &number), 0);
}

static char journal_path[128];

static void write_end(const void *data, size_t len)
{
	int fd = open(journal_path, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

/* As who found the file sound before this one began to write it anew. */
static void append_by_other(void)
{
	uint32_t record[2] = { 1500 };

	in_rewrite = NULL;
	record[1] = (uint32_t)XXH3_64bits_withSeed(record, sizeof(record[0]), other.seed);
	write_end(record, sizeof(record));
}

/* It finds a record that was cut short. */
static void rewrite_by_other(void)
{
	write_end("x", 1);
	append(&other, 1600);
}

/* A journal that is to be written anew by the next append, and another user of it. */
static void begin(struct store_scene *scene)
{
	snprintf(journal_path, sizeof(journal_path), "%s/.bidfs/journal", bid_store_path(scene->store));
	bid_journal_init(&one, scene->store, &ops, NULL);
	bid_journal_init(&other, scene->store, &ops, NULL);
	for (uint32_t i = 0; i < 1024; i++) {
		append(&one, 0);
		append(&one, 1);
	}
	bid_journal_catch_up(&other);
}

static void test_record_appended_beside_a_rewrite_is_kept(void **state)
{
	struct store_scene *scene = *state;

	begin(scene);
	/* the other one appends to the old file while the new one is written */
	in_rewrite = append_by_other;
	while (in_rewrite)
		append(&one, 2);
	run(scene, "test $(stat -c %%s store/.bidfs/journal) -lt 1000");
	bid_journal_restart(&one);
	assert_int_equal(bid_journal_catch_up(&one), 0);
	assert_true(taken[0] && taken[1] && taken[2] && taken[1500]);
	bid_journal_release(&one);
	bid_journal_release(&other);
}

static void test_record_written_to_a_file_that_is_replaced_comes_again(void **state)
{
	struct store_scene *scene = *state;

	begin(scene);
	append(&one, 3);
	/* between the look at the file and the write, the other one puts a new file in its place */
	before_write = rewrite_by_other;
	append(&one, 1700);
	assert_null(before_write);
	bid_journal_restart(&one);
	assert_int_equal(bid_journal_catch_up(&one), 0);
	assert_true(taken[0] && taken[1] && taken[1600] && taken[1700]);
	bid_journal_release(&one);
	bid_journal_release(&other);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
	const struct CMUnitTest tests[] = {
		TEST(test_commits_read_only_what_was_appended),
		TEST(test_digests_that_cannot_be_read_refuse_every_file),
		TEST(test_record_appended_beside_a_rewrite_is_kept),
		TEST(test_record_written_to_a_file_that_is_replaced_comes_again),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
