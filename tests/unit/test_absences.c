// SPDX-License-Identifier: LGPL-2.1-or-later
/* Negative cache entries: their TTL, shared and private ones, and damaged facts. */
#include "store_fixture.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/absence.h"
#include "base/cleanup.h"

#define MINUTE 60
#define HOUR   (60 * MINUTE)

#define ABSENT "store/.bidfs/absent"

static int64_t now;

static int64_t read_clock(void *user)
{
	return now;
}

static struct bid_absences *begin(const struct store_fixture *fixture)
{
	struct bid_absences *absences;

	now = 1000000;
	assert_int_equal(bid_absences_new(fixture->store, read_clock, NULL, &absences), 0);
	return absences;
}

static struct bid_request request(uint64_t number, enum bid_kind kind)
{
	struct bid_request request = { .kind = kind };

	number = htole64(number);
	assert_int_equal(bid_id_from_bytes(&number, sizeof(number), &request.id), 0);
	return request;
}

static void add(struct bid_absences *absences, uint64_t number)
{
	struct bid_request one = request(number, BID_KIND_ELF);

	assert_int_equal(bid_absences_add(absences, &one, "server"), 0);
}

static unsigned ttl(struct bid_absences *absences, uint64_t number)
{
	struct bid_request one = request(number, BID_KIND_ELF);

	return bid_absences_ttl(absences, &one, "server");
}

static void forget(struct bid_absences *absences, uint64_t number)
{
	struct bid_request one = request(number, BID_KIND_ELF);

	bid_absences_forget(absences, &one, "server");
}

static void test_repeated_absence_backs_off(void **state)
{
	static const unsigned steps[] = { 90, 10 * MINUTE, 30 * MINUTE, 2 * HOUR, 24 * HOUR, 24 * HOUR };
	struct bid_absences *absences = begin(*state);

	assert_int_equal(ttl(absences, 1), 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		add(absences, 1);
		assert_int_equal(ttl(absences, 1), steps[i]);
		assert_int_equal(ttl(absences, 2), 0);
		assert_int_equal(bid_absences_count(absences), 1);
		now += steps[i] - 1;
		assert_int_equal(ttl(absences, 1), 1);
		now++;
		assert_int_equal(ttl(absences, 1), 0);
		assert_int_equal(bid_absences_count(absences), 0);
	}
	bid_absences_free(absences);
}

static void test_entries_are_per_kind_id_detail_and_source(void **state)
{
	struct bid_request elf = request(1, BID_KIND_ELF), debuginfo = request(1, BID_KIND_DEBUGINFO), padded = elf;
	struct bid_request source = request(1, BID_KIND_SOURCE), other = source;
	struct bid_absences *absences = begin(*state);
	struct bid_detail *one, *two;

	assert_int_equal(bid_detail_source("/a.c", &one), 0);
	assert_int_equal(bid_detail_source("/b.c", &two), 0);
	source.detail = one;
	other.detail = two;
	padded.id.len++;
	assert_int_equal(bid_absences_add(absences, &elf, "server"), 0);
	assert_int_equal(bid_absences_add(absences, &source, "server"), 0);
	assert_true(bid_absences_ttl(absences, &source, "server") > 0);
	assert_int_equal(bid_absences_ttl(absences, &padded, "server"), 0);
	assert_int_equal(bid_absences_ttl(absences, &debuginfo, "server"), 0);
	assert_int_equal(bid_absences_ttl(absences, &other, "server"), 0);
	assert_int_equal(bid_absences_ttl(absences, &elf, "another"), 0);
	bid_detail_unref(one);
	bid_detail_unref(two);
	bid_absences_free(absences);
}

static void test_lookups_do_not_extend_the_backoff(void **state)
{
	struct bid_absences *absences = begin(*state);

	for (int i = 0; i < 50; i++) {
		add(absences, 1);
		assert_int_equal(ttl(absences, 1), 90);
		now += MINUTE;
	}
	bid_absences_free(absences);
}

static void test_dropped_entry_restarts_the_backoff(void **state)
{
	struct bid_absences *absences = begin(*state);

	add(absences, 1);
	now += HOUR;
	add(absences, 1);
	assert_int_equal(ttl(absences, 1), 10 * MINUTE);
	forget(absences, 1);
	forget(absences, 1);
	assert_int_equal(ttl(absences, 1), 0);
	add(absences, 1);
	assert_int_equal(ttl(absences, 1), 90);
	bid_absences_free(absences);
}

static void test_entries_survive_restarts(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_absences *absences = begin(fixture);

	add(absences, 1);
	add(absences, 2);
	forget(absences, 2);
	now += 100;
	add(absences, 1);
	bid_absences_free(absences);

	absences = begin(fixture);
	now += 160;
	assert_int_equal(ttl(absences, 1), 10 * MINUTE - 60);
	assert_int_equal(ttl(absences, 2), 0);
	bid_absences_free(absences);
}

/* The mount and bidctl: each sees the other's entries at once. */
static void test_entries_are_shared_by_programs(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_absences *one = begin(fixture), *other = begin(fixture);

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
	bid_absences_free(one);
	bid_absences_free(other);
}

static void test_clock_set_back_expires_entries(void **state)
{
	struct bid_absences *absences = begin(*state);

	add(absences, 1);
	now -= HOUR;
	assert_int_equal(ttl(absences, 1), 0);
	bid_absences_free(absences);
}

static void test_read_only_store_stays_unchanged(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_request one = request(1, BID_KIND_ELF);
	struct bid_absences *absences;
	struct bid_store *store;
	char path[128];

	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, 0, &store), 0);
	now = 5000;
	assert_int_equal(bid_absences_new(store, read_clock, NULL, &absences), 0);
	assert_int_equal(bid_absences_add(absences, &one, "server"), -EROFS);
	assert_int_equal(ttl(absences, 1), 0);
	assert_false(has_path(fixture, ".bidfs/absent"));
	bid_absences_free(absences);
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
	struct bid_absences *absences = begin(fixture);

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		add(absences, 1);
		run(fixture, "fact=$(ls " ABSENT "/01/*) && rm \"$fact\" && %s \"$fact\"", odd[i]);
		assert_int_equal(ttl(absences, 1), 0);
		assert_int_equal(bid_absences_count(absences), 0);
		add(absences, 1);
		assert_int_equal(ttl(absences, 1), 90);
		assert_int_equal(bid_absences_count(absences), 1);
		forget(absences, 1);
	}
	/* a file in the place of the folder keeps all from being written, until the store is opened again */
	run(fixture, "rm -r " ABSENT " && touch " ABSENT);
	assert_int_equal(ttl(absences, 1), 0);
	bid_absences_free(absences);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_repeated_absence_backs_off, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_entries_are_per_kind_id_detail_and_source, store_fixture_begin,
						store_fixture_end),
		cmocka_unit_test_setup_teardown(test_lookups_do_not_extend_the_backoff, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_dropped_entry_restarts_the_backoff, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_entries_survive_restarts, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_entries_are_shared_by_programs, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_clock_set_back_expires_entries, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_read_only_store_stays_unchanged, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_other_file_counts_as_no_entry, store_fixture_begin, store_fixture_end),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
