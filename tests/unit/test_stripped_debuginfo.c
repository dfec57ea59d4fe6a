// SPDX-License-Identifier: LGPL-2.1-or-later
/* Two right files of one kind and id: the debug file with something to debug with wins, and none that is right is quarantined. */
#include "api/remove.h"
#include "api/verify.h"
#include "api/written_file.h"
#include "store_fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINK	"store/.build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define UNNAMED "[debuginfod]"

/* The debuginfo that is served is the fixture's file @name. */
static void is_served(const struct store_fixture *fixture, const char *name)
{
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_DEBUGINFO);
	struct bid_file file = BID_FILE_NONE;

	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	run(fixture, "cmp %s /proc/%d/fd/%d && ! ls store/.bidfs/quarantine/* 2>/dev/null", name, getpid(), file.fd);
	bid_file_release(&file);
}

static struct bid_added add(const struct store_fixture *fixture, const char *name)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	assert_int_equal(bid_store_add(fixture->store, path, BID_LINK_COPY, &added), 0);
	return added;
}

static void fetch(const struct store_fixture *fixture, const char *name)
{
	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_DEBUGINFO), name);
}

/* perf adds the program, and a debug file under bidctl's name for it. */
static void perf_names(const struct store_fixture *fixture, const char *elf, const char *debug)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/a.stripped", fixture->directory + 1);
	perf_adds(fixture, elf, path, ID_A, "elf");
	perf_adds(fixture, debug, path, ID_A, "debug");
}

static void verify_repairs_once(const struct store_fixture *fixture, unsigned orphans)
{
	struct bid_verify_config config = { .repair = true };
	struct bid_verify_stats stats;

	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.found[BID_FINDING_ORPHAN], orphans);
	assert_int_equal(stats.left, 0);
	nothing_is_wrong(fixture);
}

static void test_fetched_debuginfo_wins_when_its_build_gets_a_name(void **state)
{
	struct store_fixture *fixture = *state;

	fetch(fixture, "a.debug");
	perf_names(fixture, "a.stripped", "a.stripped");
	add(fixture, "a.stripped");
	is_served(fixture, "a.debug");
	run(fixture, "cmp a.debug " LINK "/debug && test ! -e 'store/" UNNAMED "'");
	nothing_is_wrong(fixture);
}

static void test_named_debuginfo_wins_over_a_stripped_one_without_name(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a.stripped", UNNAMED, ID_A, "debug");
	perf_names(fixture, "a.stripped", "a.debug");
	add(fixture, "a.stripped");
	is_served(fixture, "a.debug");
	run(fixture, "cmp a.debug " LINK "/debug && test ! -e 'store/" UNNAMED "'");
}

static void test_fetched_debuginfo_replaces_a_stripped_one_without_name(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a.stripped", UNNAMED, ID_A, "debug");
	fetch(fixture, "a.debug");
	is_served(fixture, "a.debug");
	run(fixture, "cmp a.debug " LINK "/debug");
}

static void test_added_debug_file_replaces_a_stripped_one(void **state)
{
	struct store_fixture *fixture = *state;

	perf_names(fixture, "a.stripped", "a.stripped");
	assert_false(add(fixture, "a.debug").known);
	is_served(fixture, "a.debug");
	run(fixture, "cmp a.debug " LINK "/debug");
	assert_true(add(fixture, "a.debug").known);
	nothing_is_wrong(fixture);
}

static void test_added_unstripped_program_replaces_a_stripped_debug_file(void **state)
{
	struct store_fixture *fixture = *state;

	perf_names(fixture, "a.stripped", "a.stripped");
	assert_int_equal(add(fixture, "a").kind, BID_KIND_DEBUGINFO);
	is_served(fixture, "a");
	run(fixture, "cmp a " LINK "/debug && cmp a.stripped " LINK "/elf");
}

static void test_written_debug_file_replaces_a_stripped_one(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_DEBUGINFO);
	struct bid_written_file *written;

	perf_names(fixture, "a.stripped", "a.stripped");
	assert_int_equal(bid_written_file_new(fixture->store, &written), 0);
	run(fixture, "cp a.debug /proc/%d/fd/%d", getpid(), bid_written_file_fd(written));
	assert_int_equal(bid_written_file_publish(written, &artifact, "usr/bin/a/" ID_A), 0);
	bid_written_file_free(written);
	is_served(fixture, "a.debug");
	run(fixture, "cmp a.debug " LINK "/debug");
}

static void test_right_files_that_differ_keep_their_names(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture, "cp a.stripped signed && printf signature >>signed");
	perf_names(fixture, "a.stripped", "a.debug");
	perf_adds(fixture, "signed", "opt/a", ID_A, "elf");
	perf_adds(fixture, "a", "opt/a", ID_A, "debug");
	nothing_is_wrong(fixture);
	verify_repairs_once(fixture, 0);
	is_served(fixture, "a.debug");
	run(fixture, "cmp a.debug " LINK "/debug && cmp signed store/opt/a/" ID_A "/elf && cmp a store/opt/a/" ID_A "/debug");
}

static void test_name_that_stays_inherits_the_better_debug_file(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_removal removal = { .id = id_of(ID_A) };
	char path[96];

	perf_names(fixture, "a.stripped", "a.debug");
	perf_adds(fixture, "a.stripped", "opt/a", ID_A, "elf");
	perf_adds(fixture, "a.stripped", "opt/a", ID_A, "debug");
	snprintf(path, sizeof(path), "%s/a.stripped", fixture->directory);
	removal.path = path;
	assert_int_equal(bid_store_remove(fixture->store, &removal, 1), 0);
	is_served(fixture, "a.debug");
	run(fixture, "cmp a.debug store/opt/a/" ID_A "/debug");
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_fetched_debuginfo_wins_when_its_build_gets_a_name),
		TEST(test_named_debuginfo_wins_over_a_stripped_one_without_name),
		TEST(test_fetched_debuginfo_replaces_a_stripped_one_without_name),
		TEST(test_added_debug_file_replaces_a_stripped_one),
		TEST(test_added_unstripped_program_replaces_a_stripped_debug_file),
		TEST(test_written_debug_file_replaces_a_stripped_one),
		TEST(test_right_files_that_differ_keep_their_names),
		TEST(test_name_that_stays_inherits_the_better_debug_file),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
