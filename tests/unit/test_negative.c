// SPDX-License-Identifier: LGPL-2.1-or-later
/* Negative cache entries: their TTL, shared and private ones, and damaged facts. */
#include "store_fixture.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/negative.h"
#include "base/cleanup.h"

#define MINUTE 60
#define HOUR   (60 * MINUTE)

#define ABSENT "store/.bidfs/absent"

static time_t now;

/* In the place of the C library's. */
time_t time(time_t *ret_time)
{
	if (ret_time)
		*ret_time = now;
	return now;
}

static struct bid_negative *begin(const struct store_fixture *fixture)
{
	struct bid_negative *negative;

	now = 1000000;
	assert_int_equal(bid_negative_new(fixture->store, &negative), 0);
	return negative;
}

static struct bid_artifact artifact(uint64_t number, enum bid_kind kind)
{
	struct bid_artifact artifact = { .kind = kind };

	number = htole64(number);
	assert_int_equal(bid_id_from_bytes(&number, sizeof(number), &artifact.id), 0);
	return artifact;
}

static void add(struct bid_negative *negative, uint64_t number)
{
	struct bid_artifact one = artifact(number, BID_KIND_ELF);

	bid_negative_add(negative, &one, "server", BID_OUTCOME_ABSENT);
}

/* Returns the seconds left of the entry for @artifact, with the reason "absent"; 0 without one. */
static unsigned ttl_of(struct bid_negative *negative, const struct bid_artifact *artifact, const char *source)
{
	unsigned ttl;

	return bid_negative_lookup(negative, artifact, source, &ttl) == BID_OUTCOME_ABSENT ? ttl : 0;
}

static unsigned ttl(struct bid_negative *negative, uint64_t number)
{
	struct bid_artifact one = artifact(number, BID_KIND_ELF);

	return ttl_of(negative, &one, "server");
}

static void forget(struct bid_negative *negative, uint64_t number)
{
	struct bid_artifact one = artifact(number, BID_KIND_ELF);

	bid_negative_forget(negative, &one, "server");
}

static void test_repeated_absence_backs_off(void **state)
{
	static const unsigned steps[] = { 90, 10 * MINUTE, 30 * MINUTE, 2 * HOUR, 24 * HOUR, 24 * HOUR };
	struct bid_negative *negative = begin(*state);

	assert_int_equal(ttl(negative, 1), 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		add(negative, 1);
		assert_int_equal(ttl(negative, 1), steps[i]);
		assert_int_equal(ttl(negative, 2), 0);
		assert_int_equal(bid_negative_count(negative), 1);
		now += steps[i] - 1;
		assert_int_equal(ttl(negative, 1), 1);
		now++;
		assert_int_equal(ttl(negative, 1), 0);
		assert_int_equal(bid_negative_count(negative), 0);
	}
	bid_negative_free(negative);
}

static void test_entries_are_per_kind_id_subpath_and_source(void **state)
{
	struct bid_artifact elf = artifact(1, BID_KIND_ELF), debuginfo = artifact(1, BID_KIND_DEBUGINFO), padded = elf;
	struct bid_artifact source = artifact(1, BID_KIND_SOURCE), other = source;
	struct bid_negative *negative = begin(*state);
	struct bid_subpath *one, *two;

	assert_int_equal(bid_subpath_source("/a.c", &one), 0);
	assert_int_equal(bid_subpath_source("/b.c", &two), 0);
	source.subpath = one;
	other.subpath = two;
	padded.id.len++;
	bid_negative_add(negative, &elf, "server", BID_OUTCOME_ABSENT);
	bid_negative_add(negative, &source, "server", BID_OUTCOME_ABSENT);
	assert_true(ttl_of(negative, &source, "server") > 0);
	assert_int_equal(ttl_of(negative, &padded, "server"), 0);
	assert_int_equal(ttl_of(negative, &debuginfo, "server"), 0);
	assert_int_equal(ttl_of(negative, &other, "server"), 0);
	assert_int_equal(ttl_of(negative, &elf, "another"), 0);
	bid_subpath_unref(one);
	bid_subpath_unref(two);
	bid_negative_free(negative);
}

static void test_lookups_do_not_extend_the_backoff(void **state)
{
	struct bid_negative *negative = begin(*state);

	for (int i = 0; i < 50; i++) {
		add(negative, 1);
		assert_int_equal(ttl(negative, 1), 90);
		now += MINUTE;
	}
	bid_negative_free(negative);
}

static void test_dropped_entry_restarts_the_backoff(void **state)
{
	struct bid_negative *negative = begin(*state);

	add(negative, 1);
	now += HOUR;
	add(negative, 1);
	assert_int_equal(ttl(negative, 1), 10 * MINUTE);
	forget(negative, 1);
	forget(negative, 1);
	assert_int_equal(ttl(negative, 1), 0);
	add(negative, 1);
	assert_int_equal(ttl(negative, 1), 90);
	bid_negative_free(negative);
}

static void test_entries_survive_restarts(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_negative *negative = begin(fixture);

	add(negative, 1);
	add(negative, 2);
	forget(negative, 2);
	now += 100;
	add(negative, 1);
	bid_negative_free(negative);

	negative = begin(fixture);
	now += 160;
	assert_int_equal(ttl(negative, 1), 10 * MINUTE - 60);
	assert_int_equal(ttl(negative, 2), 0);
	bid_negative_free(negative);
}

/* The mount and bidctl: each sees the other's entries at once. */
static void test_entries_are_shared_by_programs(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_negative *one = begin(fixture), *other = begin(fixture);

	add(one, 1);
	assert_true(ttl(other, 1) > 0);
	forget(other, 1);
	assert_int_equal(ttl(one, 1), 0);

	add(one, 3);
	assert_true(ttl(other, 3) > 0);
	add(other, 4);
	assert_true(ttl(one, 4) > 0);

	/* a user who removes the folder removes all entries */
	run(fixture, "rm -r " ABSENT);
	assert_int_equal(ttl(one, 3), 0);
	add(one, 5);
	assert_true(ttl(other, 5) > 0);
	assert_int_equal(ttl(other, 4), 0);
	bid_negative_free(one);
	bid_negative_free(other);
}

/* Reasons other than "absent" are in memory, with one TTL each, however often they are added. */
static void test_each_reason_has_its_ttl(void **state)
{
	static const struct {
		enum bid_outcome reason;
		unsigned ttl;
		const char *source;
	} reasons[] = {
		{ BID_OUTCOME_UNSUPPORTED, 90, "server" },
		{ BID_OUTCOME_REFUSED, 90, "server" },
		{ BID_OUTCOME_REJECTED, 90, "server" },
		{ BID_OUTCOME_TOO_LARGE, 10 * MINUTE, BID_NEGATIVE_ALL },
	};
	struct bid_negative *negative = begin(*state), *other = begin(*state);
	struct bid_artifact one = artifact(1, BID_KIND_ELF);
	unsigned ttl = 0;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		for (int times = 0; times < 2; times++) {
			bid_negative_add(negative, &one, reasons[i].source, reasons[i].reason);
			assert_int_equal(bid_negative_lookup(negative, &one, reasons[i].source, &ttl), reasons[i].reason);
			assert_int_equal(ttl, reasons[i].ttl);
			assert_int_equal(bid_negative_lookup(other, &one, reasons[i].source, &ttl), BID_OUTCOME_NONE);
			now += reasons[i].ttl;
			assert_int_equal(bid_negative_lookup(negative, &one, reasons[i].source, &ttl), BID_OUTCOME_NONE);
		}
	bid_negative_free(negative);
	bid_negative_free(other);
}

static void test_clock_set_back_expires_entries(void **state)
{
	struct bid_negative *negative = begin(*state);

	add(negative, 1);
	now -= HOUR;
	assert_int_equal(ttl(negative, 1), 0);
	bid_negative_free(negative);
}

static void test_read_only_store_stays_unchanged(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact one = artifact(1, BID_KIND_ELF);
	struct bid_negative *negative;
	struct bid_store *store;
	char path[128];

	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, 0, &store), 0);
	now = 5000;
	assert_int_equal(bid_negative_new(store, &negative), 0);
	/* in memory, for this program */
	for (int i = 0; i < 3; i++) {
		bid_negative_add(negative, &one, "server", BID_OUTCOME_ABSENT);
		assert_int_equal(ttl(negative, 1), 90);
		assert_int_equal(bid_negative_count(negative), 1);
		now += 90;
		assert_int_equal(ttl(negative, 1), 0);
		assert_int_equal(bid_negative_count(negative), 0);
	}
	assert_false(has_path(fixture, ".bidfs/absent"));
	bid_negative_free(negative);
	bid_store_free(store);
}

/* Anything in the place of a fact is none, and makes room for one. */
static void test_other_file_counts_as_no_entry(void **state)
{
	struct store_fixture *fixture = *state;
	static const char *const odd[] = { "ln -s /etc/passwd",
					   "ln -s '1000090 9'",
					   "ln -s '1000090 -1'",
					   "ln -s '1000090 1 '",
					   "ln -s x$(printf %%0200d 0)",
					   "mkdir",
					   "mkfifo",
					   "touch" };
	struct bid_negative *negative = begin(fixture);

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		add(negative, 1);
		run(fixture, "fact=$(ls " ABSENT "/01/*) && rm \"$fact\" && %s \"$fact\"", odd[i]);
		assert_int_equal(ttl(negative, 1), 0);
		assert_int_equal(bid_negative_count(negative), 0);
		add(negative, 1);
		assert_int_equal(ttl(negative, 1), 90);
		assert_int_equal(bid_negative_count(negative), 1);
		forget(negative, 1);
	}
	/* a file in the place of the folder keeps all from being written, until the store is opened again */
	run(fixture, "rm -r " ABSENT " && touch " ABSENT);
	assert_int_equal(ttl(negative, 1), 0);
	bid_negative_free(negative);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_repeated_absence_backs_off, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_entries_are_per_kind_id_subpath_and_source, store_fixture_begin,
						store_fixture_end),
		cmocka_unit_test_setup_teardown(test_lookups_do_not_extend_the_backoff, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_dropped_entry_restarts_the_backoff, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_entries_survive_restarts, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_entries_are_shared_by_programs, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_each_reason_has_its_ttl, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_clock_set_back_expires_entries, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_read_only_store_stays_unchanged, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_other_file_counts_as_no_entry, store_fixture_begin, store_fixture_end),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
