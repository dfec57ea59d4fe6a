// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reported additions are on disk and have a record: also files published by another process, and the first of many files. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

enum {
	N_FILES = 200, /* some of them wait, and some have a name */
	FEW = 1024, /* files that may be open */
};

static unsigned syncs;

/* In the place of the C library's. */
int syncfs(int fd)
{
	syncs++;
	return (int)syscall(SYS_syncfs, fd);
}

static void add(const struct store_fixture *fixture, const char *name, bool known)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	assert_int_equal(bid_store_add(fixture->store, path, BID_LINK_AUTO, &added), 0);
	assert_int_equal(added.known, known);
}

static void test_file_of_another_process_is_synced(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "somewhere", ID_A, "elf");
	syncs = 0;
	add(fixture, "a", true);
	assert_true(syncs > 0);
}

static void test_memory_file_is_synced(void **state)
{
	static const char symbols[] = "ffffffff81000000 T _text\n";
	struct bid_artifact artifact = request_for(ID_B, BID_KIND_KALLSYMS);
	struct store_fixture *fixture = *state;
	struct bid_added added;

	run(fixture, "mkdir -p 'store/[kernel.kallsyms]/%s' && printf '%s' > 'store/[kernel.kallsyms]/%s/kallsyms'", ID_B, symbols,
	    ID_B);
	syncs = 0;
	assert_int_equal(bid_store_add_data(fixture->store, &artifact, 0444, symbols, strlen(symbols), &added), 0);
	assert_true(added.known && syncs == 1);
}

/* A commit queue that syncs the written files, and not those that another is about to write. */
struct reader {
	struct bid_store *store;
	unsigned added, known, unsynced, unrecorded;
};

static int is_how(void *user, const char *name, const char *value)
{
	return strcmp(name, "how") == 0 && strcmp(value, "added") == 0;
}

static int look(void *user, const struct bid_scan_file *file)
{
	struct bid_artifact artifact = { .id = file->added.id, .kind = file->added.kind };
	struct reader *reader = user;

	if (file->error < 0)
		return file->error;
	reader->unsynced += syncs == 0;
	if (file->added.known) {
		reader->known++;
		return 0;
	}
	reader->added++;
	reader->unrecorded += bid_store_each_field(reader->store, &artifact, is_how, NULL) != 1;
	return 0;
}

static struct reader scan(const struct store_fixture *fixture, const char *name)
{
	struct reader reader = { 0 };
	struct bid_scan_config config = { .jobs = 2, .link = BID_LINK_COPY, .file = look, .user = &reader };
	struct bid_scan_counts counts;
	char path[96];

	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, 0, &reader.store), 0);
	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	syncs = 0;
	assert_int_equal(bid_store_scan(fixture->store, path, &config, &counts), 0);
	bid_store_free(reader.store);
	return reader;
}

static void test_scan_syncs_files_of_others(void **state)
{
	struct store_fixture *fixture = *state;
	struct reader reader;
	char place[128];

	run(fixture, "rm -rf tree && mkdir tree && cp a tree/one && cp b tree/other && cp a.debug tree/debug");
	for (int turn = 0; turn < 2; turn++) {
		snprintf(place, sizeof(place), "%s/tree/one", fixture->directory + 1);
		perf_adds(fixture, "a", place, ID_A, "elf");
		perf_adds(fixture, "a.debug", place, ID_A, "debug");
		perf_adds(fixture, "b", "elsewhere", ID_B, "elf");
		reader = scan(fixture, "tree");
		assert_int_equal(reader.known, 3);
		assert_int_equal(reader.unsynced, 0);
		/* the second time by the cache of the first */
		run(fixture, "rm -rf store/.build-id store/%s/tree store/elsewhere", fixture->directory + 1);
	}
}

/* Copies of "a", each with an id of its own. */
static void make_tree(const struct store_fixture *fixture)
{
	struct bid_id id = id_of(ID_A);
	bid_auto_free char *data = NULL;
	bid_auto_fd int fd = -1;
	char path[96], *at;
	size_t len;

	run(fixture, "rm -rf tree && mkdir tree");
	snprintf(path, sizeof(path), "%s/a", fixture->directory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && bid_read_file(fd, 1 << 20, &data, &len) == 0);
	at = memmem(data, len, id.bytes, id.len);
	assert_non_null(at);
	for (uint32_t i = 1; i <= N_FILES; i++) {
		bid_auto_fd int file = -1;

		memcpy(at, &i, sizeof(i));
		snprintf(path, sizeof(path), "%s/tree/%u", fixture->directory, (unsigned)i);
		file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
		assert_true(file >= 0 && bid_pwrite_full(file, data, len, 0) == 0);
	}
}

static void test_first_of_many_files_has_its_record(void **state)
{
	struct store_fixture *fixture = *state;
	struct rlimit before, few;
	struct reader reader;

	make_tree(fixture);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = before.rlim_cur < FEW ? before.rlim_cur : FEW, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	reader = scan(fixture, "tree");
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(reader.added, N_FILES);
	assert_int_equal(reader.unsynced, 0);
	assert_int_equal(reader.unrecorded, 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_file_of_another_process_is_synced),
		TEST(test_memory_file_is_synced),
		TEST(test_scan_syncs_files_of_others),
		TEST(test_first_of_many_files_has_its_record),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
