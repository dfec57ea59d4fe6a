// SPDX-License-Identifier: LGPL-2.1-or-later
/* Facts, and the use of the fact of the first download of an id. */
#include "store_fixture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include "api/verify.h"
#include "disk/fact.h"
#include "disk/layout.h"

#define FIRST "store/.bidfs/first"

static int read_error;
static bool no_memory;

/* In the place of libxxhash's. */
XXH3_state_t *XXH3_createState(void)
{
	XXH3_state_t *(*create)(void) = (XXH3_state_t * (*)(void)) dlsym(RTLD_NEXT, "XXH3_createState");

	return no_memory ? NULL : create();
}

/* In the place of the C library's. */
ssize_t readlinkat(int dir, const char *restrict path, char *restrict buf, size_t size)
{
	if (read_error) {
		errno = read_error;
		return -1;
	}
	return syscall(SYS_readlinkat, dir, path, buf, size);
}

static int fetch(const struct store_fixture *fixture, const char *name, bool accept)
{
	int r = store_fixture_try_fetch(fixture, request_for(ID_A, BID_KIND_ELF), name, accept);

	run(fixture, "rm -rf 'store/[debuginfod]' store/.build-id store/.bidfs/record");
	return r;
}

static void test_changed_bytes_are_refused(void **state)
{
	struct store_fixture *fixture = *state;

	assert_int_equal(fetch(fixture, "a", false), 0);
	assert_int_equal(fetch(fixture, "a", false), 0);
	assert_int_equal(fetch(fixture, "a.stripped", false), -ESTALE);
	assert_int_equal(fetch(fixture, "a.stripped", true), 0);
	assert_int_equal(fetch(fixture, "a", false), -ESTALE);
	/* a user may remove the digests */
	run(fixture, "rm -r " FIRST);
	assert_int_equal(fetch(fixture, "a", false), 0);
}

static void test_unreadable_digest_refuses_every_file(void **state)
{
	struct store_fixture *fixture = *state;

	assert_int_equal(fetch(fixture, "a", false), 0);
	read_error = EIO;
	assert_int_equal(fetch(fixture, "a", false), -EIO);
	read_error = 0;
	assert_int_equal(fetch(fixture, "a.stripped", false), -ESTALE);
	assert_int_equal(fetch(fixture, "a", false), 0);
}

static void test_missing_memory_leaves_out_no_digest(void **state)
{
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	struct bid_verify_config config = { .deep = true };
	struct store_fixture *fixture = *state;
	struct bid_verify_stats stats;
	struct bid_txn *txn;

	/* a small file takes no memory */
	run(fixture, "cp a large && truncate -s 3M large");
	assert_int_equal(store_fixture_try_fetch(fixture, artifact, "large", false), 0);
	no_memory = true;
	assert_int_equal(bid_txn_begin(fixture->store, &artifact, &txn), -ENOMEM);
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), -ENOMEM);
	no_memory = false;
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.digests, 1);
}

static void test_malformed_digest_counts_as_none(void **state)
{
	struct store_fixture *fixture = *state;
	static const char *const odd[] = { "ln -s rubbish", "mkdir", "touch" };

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		assert_int_equal(fetch(fixture, "a", false), 0);
		run(fixture, "rm " FIRST "/aa/* && %s $(printf " FIRST "/aa/%s.elf)", odd[i], ID_A + 2);
		assert_int_equal(fetch(fixture, "a.stripped", false), 0);
		assert_int_equal(fetch(fixture, "a", false), -ESTALE);
		run(fixture, "rm -r " FIRST);
	}
}

static size_t count(const struct store_fixture *fixture)
{
	size_t n = 0;
	DIR *dir;
	char path[96];

	snprintf(path, sizeof(path), "%s/" FIRST "/aa", fixture->directory);
	dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void write_fact(const struct store_fixture *fixture, const char *more)
{
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);

	assert_int_equal(bid_fact_write(fixture->store, BID_LAYOUT_FIRST, &artifact, more, "text"), 0);
}

static void test_trim_keeps_the_newer_half(void **state)
{
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	struct store_fixture *fixture = *state;
	char text[BID_FACT_MAX], more[BID_FACT_MORE_MAX];

	for (int i = 0; i < 20; i++) {
		snprintf(more, sizeof(more), "%d", i);
		write_fact(fixture, more);
		run(fixture, "touch -h -d '%d days ago' " FIRST "/aa/%s.elf.%d", 40 - i, ID_A + 2, i);
	}
	assert_int_equal(bid_fact_trim(fixture->store, BID_LAYOUT_FIRST, 256 * 20, INT64_MIN), 0);
	assert_int_equal(count(fixture), 20);
	assert_int_equal(bid_fact_trim(fixture->store, BID_LAYOUT_FIRST, 256 * 10, INT64_MIN), 0);
	assert_int_equal(count(fixture), 5);
	assert_int_equal(bid_fact_read(fixture->store, BID_LAYOUT_FIRST, &artifact, "14", text), -ENOENT);
	assert_int_equal(bid_fact_read(fixture->store, BID_LAYOUT_FIRST, &artifact, "15", text), 0);
	assert_string_equal(text, "text");
	/* by age alone */
	assert_int_equal(bid_fact_trim(fixture->store, BID_LAYOUT_FIRST, 256 * 10, INT64_MAX), 0);
	assert_int_equal(count(fixture), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_changed_bytes_are_refused),		TEST(test_unreadable_digest_refuses_every_file),
		TEST(test_missing_memory_leaves_out_no_digest), TEST(test_malformed_digest_counts_as_none),
		TEST(test_trim_keeps_the_newer_half),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
