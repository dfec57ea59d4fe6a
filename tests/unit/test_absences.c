// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is remembered as absent: for how long, of how many, by whom, and what becomes of it when the file is damaged. */
#include "store_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bid/absence.h>

#include "base/cleanup.h"

#define MINUTE 60
#define HOUR   (60 * MINUTE)

#define ABSENT "store/.bidfs/absent"

static int64_t now;

static int64_t read_clock(void *user)
{
	return now;
}

/* @scene NULL: in memory only. */
static struct bid_absences *begin(const struct store_scene *scene, uint32_t max)
{
	struct bid_absences *absences;

	now = 1000000;
	assert_int_equal(bid_absences_new(scene ? scene->store : NULL, max, read_clock, NULL, &absences), 0);
	return absences;
}

static struct bid_request request(uint64_t number, enum bid_kind kind)
{
	struct bid_request request = { .kind = kind };

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

static off_t size_of(const struct store_scene *scene, const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", scene->directory, name);
	return stat(path, &st) < 0 ? -1 : st.st_size;
}

static void test_a_second_look_then_longer(void **state)
{
	static const unsigned steps[] = { 90, 10 * MINUTE, 30 * MINUTE, 2 * HOUR, 24 * HOUR, 24 * HOUR };
	struct bid_absences *absences = begin(*state, 10);

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

static void test_kinds_ids_details_and_sources_are_apart(void **state)
{
	struct bid_request elf = request(1, BID_KIND_ELF), debuginfo = request(1, BID_KIND_DEBUGINFO), padded = elf;
	struct bid_request source = request(1, BID_KIND_SOURCE), other = source;
	struct bid_absences *absences = begin(*state, 10);
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

static void test_asking_often_does_not_grow(void **state)
{
	struct bid_absences *absences = begin(*state, 10);

	for (int i = 0; i < 50; i++) {
		add(absences, 1);
		assert_int_equal(ttl(absences, 1), 90);
		now += MINUTE;
	}
	bid_absences_free(absences);
}

static void test_forgotten_begins_anew(void **state)
{
	struct bid_absences *absences = begin(*state, 10);

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

static void test_the_least_wanted_is_pushed_out(void **state)
{
	struct bid_absences *absences = begin(NULL, 3);

	add(absences, 1);
	add(absences, 2);
	add(absences, 3);
	assert_true(ttl(absences, 1) > 0);
	add(absences, 4);
	assert_int_equal(ttl(absences, 2), 0);
	assert_true(ttl(absences, 1) > 0);
	assert_true(ttl(absences, 3) > 0);
	assert_true(ttl(absences, 4) > 0);
	assert_int_equal(bid_absences_count(absences), 3);
	bid_absences_free(absences);
}

/* Many more than there is room for: the bound holds, the latest stay, and the file does not grow without end either. */
static void test_bounded(void **state)
{
	enum { MAX = 5000, N = 30000 };
	struct store_scene *scene = *state;
	struct bid_absences *absences = begin(scene, MAX);

	for (uint64_t i = 0; i < N; i++)
		add(absences, i);
	assert_int_equal(bid_absences_count(absences), MAX);
	for (uint64_t i = 0; i < N; i++)
		assert_int_equal(ttl(absences, i) > 0, i >= N - MAX);
	assert_in_range(size_of(scene, ABSENT), 32 * MAX, 32 * (2 * MAX + 2));
	bid_absences_free(absences);
}

static void test_kept_over_restarts(void **state)
{
	struct store_scene *scene = *state;
	struct bid_absences *absences = begin(scene, 10);

	add(absences, 1);
	add(absences, 2);
	forget(absences, 2);
	now += 100;
	add(absences, 1);
	bid_absences_free(absences);

	absences = begin(scene, 10);
	now += 160;
	assert_int_equal(ttl(absences, 1), 10 * MINUTE - 60);
	assert_int_equal(ttl(absences, 2), 0);
	bid_absences_free(absences);
}

/* The mount and bidctl: what one notes or forgets the other knows at once. */
static void test_shared_by_programs(void **state)
{
	struct store_scene *scene = *state;
	struct bid_absences *one = begin(scene, 2000), *other = begin(scene, 2000);

	add(one, 1);
	assert_true(ttl(other, 1) > 0);
	forget(other, 1);
	assert_int_equal(ttl(one, 1), 0);

	/* ... also when one of them writes the file anew */
	for (int i = 0; i < 3000; i++) {
		add(one, 2);
		forget(one, 2);
	}
	assert_in_range(size_of(scene, ABSENT), 32, 32 * 2050);
	add(one, 3);
	assert_true(ttl(other, 3) > 0);
	add(other, 4);
	assert_true(ttl(one, 4) > 0);

	/* who removes the file wants it forgotten */
	run(scene, "rm " ABSENT);
	assert_int_equal(ttl(one, 3), 0);
	add(one, 5);
	assert_true(ttl(other, 5) > 0);
	assert_int_equal(ttl(other, 4), 0);
	bid_absences_free(one);
	bid_absences_free(other);
}

static void test_a_clock_that_was_set_back(void **state)
{
	struct bid_absences *absences = begin(*state, 10);

	add(absences, 1);
	now -= HOUR;
	assert_int_equal(ttl(absences, 1), 0);
	bid_absences_free(absences);
}

static void test_a_read_only_store_is_left_alone(void **state)
{
	struct store_scene *scene = *state;
	struct bid_absences *absences;
	struct bid_store *store;
	char path[128];

	snprintf(path, sizeof(path), "%s/store", scene->directory);
	assert_int_equal(bid_store_open(path, 0, &store), 0);
	now = 5000;
	assert_int_equal(bid_absences_new(store, 10, read_clock, NULL, &absences), 0);
	add(absences, 1);
	assert_int_equal(ttl(absences, 1), 90);
	assert_int_equal(size_of(scene, ABSENT), -1);
	bid_absences_free(absences);
	bid_store_free(store);
}

/* Every byte of the file, changed, and every length of it: at worst an absence is forgotten, and the file is usable again. */
static void test_damaged(void **state)
{
	struct store_scene *scene = *state;
	struct bid_absences *absences = begin(scene, 10);
	char path[128], saved[160];

	add(absences, 1);
	add(absences, 2);
	add(absences, 3);
	bid_absences_free(absences);
	assert_int_equal(size_of(scene, ABSENT), 4 * 32);
	snprintf(path, sizeof(path), "%s/" ABSENT, scene->directory);
	snprintf(saved, sizeof(saved), "%s/saved", scene->directory);
	assert_int_equal(rename(path, saved), 0);
	for (off_t at = 0; at < 2 * 128; at++) {
		bid_auto_fd int fd = -1;
		char byte;

		run(scene, "cp saved " ABSENT);
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		if (at < 128) {
			assert_int_equal(pread(fd, &byte, 1, at), 1);
			byte ^= 0x55;
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		} else {
			assert_int_equal(ftruncate(fd, at - 128), 0);
		}
		absences = begin(scene, 10);
		/* one record is lost, or with the header or the rest of the file all that it had */
		assert_in_range(bid_absences_count(absences), 0, 3);
		if (at >= 32 && at < 128)
			assert_int_equal(bid_absences_count(absences), 2);
		if (at >= 160)
			assert_int_equal(bid_absences_count(absences), (at - 160) / 32);
		add(absences, 4);
		bid_absences_free(absences);
		absences = begin(scene, 10);
		assert_int_equal(ttl(absences, 4), 90);
		bid_absences_free(absences);
	}
}

/* Anything in the place of the file is no file, and makes room for one. What a directory holds is nobody's to delete. */
static void test_no_file(void **state)
{
	struct store_scene *scene = *state;
	static const char *const odd[] = { "mkdir " ABSENT,   "mkdir " ABSENT " && echo mine >" ABSENT "/file",
					   "mkfifo " ABSENT,  "ln -s /etc/passwd " ABSENT,
					   "ln -s . " ABSENT, "ln -s absent " ABSENT };

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct bid_absences *absences;

		run(scene, "rm -rf " ABSENT " && mkdir -p store/.bidfs && %s", odd[i]);
		absences = begin(scene, 10);
		add(absences, 1);
		bid_absences_free(absences);
		absences = begin(scene, 10);
		assert_int_equal(ttl(absences, 1), 90);
		bid_absences_free(absences);
		run(scene, "test -f " ABSENT " && ! test -L " ABSENT);
	}
	run(scene, "test \"$(cat store/.bidfs/quarantine/absent/file)\" = mine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_second_look_then_longer, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_kinds_ids_details_and_sources_are_apart, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_asking_often_does_not_grow, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_forgotten_begins_anew, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_the_least_wanted_is_pushed_out, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_bounded, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_kept_over_restarts, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_shared_by_programs, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_a_clock_that_was_set_back, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_a_read_only_store_is_left_alone, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_damaged, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_no_file, store_scene_begin, store_scene_end),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
