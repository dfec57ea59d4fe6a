// SPDX-License-Identifier: LGPL-2.1-or-later
/* What becomes of records in packs: they are amended, voided, and forgotten. */
#include "pack_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "disk/pack/packs.h"
#include "disk/record.h"
#include "disk/record_amend.h"

enum { TURNS = 4000, LATEST_US = 400 };

/* What is said in a record of its digest; "" if nothing is. */
static void recorded_digest(struct bid_store *store, unsigned number, char ret_digest[static 64])
{
	struct bid_request request = request_of(number);
	const char *digest;
	json_t *json;

	assert_int_equal(bid_record_read(store, &request, &json), 0);
	digest = json_string_value(json_object_get(json, "digest"));
	snprintf(ret_digest, 64, "%s", digest ? digest : "");
	json_decref(json);
}

static struct bid_record_amends *amends_of(struct bid_store *store)
{
	struct bid_record_amends *amends;

	assert_int_equal(bid_record_amends_new(store, true, &amends), 0);
	return amends;
}

static void digests_are_amended_in_the_pack(void **state)
{
	struct store_scene *scene = *state;
	struct bid_store *other = open_again(scene, 0);
	struct bid_record_amends *amends = amends_of(scene->store);
	struct bid_record record = record_of(3);
	char digest[64], said[64];

	write_batch(scene->store, 0, 100);
	write_batch(scene->store, 100, 20);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	record.size = 333;
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	for (unsigned i = 0; i < 120; i += 3) {
		struct bid_request request = request_of(i);

		snprintf(digest, sizeof(digest), "xxh3-128:%032x", i);
		assert_int_equal(bid_record_amends_digest(amends, &request, digest), 0);
	}
	/* one changes meanwhile, which the digest is not of, perhaps */
	record = record_of(6);
	record.size = 666;
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 2);
	for (unsigned i = 0; i < 120; i++) {
		snprintf(digest, sizeof(digest), "xxh3-128:%032x", i);
		recorded_digest(other, i, said);
		assert_string_equal(said, i % 3 == 0 && i != 6 ? digest : "");
		assert_int_equal(recorded(other, i), i == 3 ? 333 : i == 6 ? 666 : i);
	}
	bid_record_amends_free(amends);
	bid_store_free(other);
}

/* Digests of a few records: to write all packs for them would be out of proportion. */
static void few_digests_leave_the_packs_alone(void **state)
{
	struct store_scene *scene = *state;
	struct bid_record_amends *amends = amends_of(scene->store);
	struct bid_request request = request_of(5), changed = request_of(6);
	char said[64];

	write_batch(scene->store, 0, 1000);
	write_batch(scene->store, 1000, 100);
	assert_int_equal(bid_record_amends_digest(amends, &request, "xxh3-128:5"), 0);
	assert_int_equal(bid_record_amends_digest(amends, &changed, "xxh3-128:6"), 0);
	assert_int_equal(bid_record_set(scene->store, &changed, "how", "fetched"), 0);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 2);
	recorded_digest(scene->store, 5, said);
	assert_string_equal(said, "xxh3-128:5");
	recorded_digest(scene->store, 6, said);
	assert_string_equal(said, "");
	bid_record_amends_free(amends);
}

/* Who was asked for some ids does not write what is of others. */
static void amends_of_some_ids_leave_the_packs_alone(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_of(5), voided = request_of(6);
	struct bid_record_amends *amends;
	char said[64];

	write_batch(scene->store, 0, 10);
	write_batch(scene->store, 10, 2);
	assert_int_equal(bid_record_amends_new(scene->store, false, &amends), 0);
	assert_int_equal(bid_record_amends_digest(amends, &request, "xxh3-128:5"), 0);
	bid_record_drop(scene->store, &voided);
	assert_int_equal(bid_record_amends_void(amends, &voided), 0);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	recorded_digest(scene->store, 5, said);
	assert_string_equal(said, "xxh3-128:5");
	assert_true(bid_record_is_void(scene->store, &voided));
	bid_record_amends_free(amends);
}

/* What was written there meanwhile is no empty file any more. */
static void a_record_is_not_taken_for_a_void_one(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_of(5);
	struct bid_record record = record_of(5);

	assert_int_equal(bid_record_write(scene->store, &record), 0);
	run(scene, "cd store/.bidfs/record/17 && ls -i > ../../../../before");
	assert_int_equal(bid_record_unvoid(scene->store, &request), -EBUSY);
	run(scene, "cd store/.bidfs/record/17 && ls -i | cmp - ../../../../before");
	assert_int_equal(recorded(scene->store, 5), 5);
}

struct race {
	struct bid_store *store;
	struct bid_request request;
	pthread_barrier_t begin, end; /* of a turn */
};

static void *unvoid_each_turn(void *user)
{
	struct race *race = user;

	for (unsigned turn = 0; turn < TURNS; turn++) {
		int64_t until;

		pthread_barrier_wait(&race->begin);
		/* at another moment of the writing in each turn */
		for (until = bid_clock_ns() + turn % LATEST_US * INT64_C(1000); bid_clock_ns() < until;)
			;
		bid_record_unvoid(race->store, &race->request);
		pthread_barrier_wait(&race->end);
	}
	return NULL;
}

/* An empty file goes, and what comes to its name in that moment stays, and is missing for none. */
static void what_is_written_while_a_void_one_goes_stays(void **state)
{
	struct store_scene *scene = *state;
	struct race race = { .store = scene->store, .request = request_of(5) };
	struct bid_record record = record_of(5);
	pthread_t other;

	write_batch(scene->store, 0, 10);
	pthread_barrier_init(&race.begin, NULL, 2);
	pthread_barrier_init(&race.end, NULL, 2);
	assert_int_equal(pthread_create(&other, NULL, unvoid_each_turn, &race), 0);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		json_int_t at_once;
		int r;

		bid_record_drop(scene->store, &race.request);
		assert_true(bid_record_is_void(scene->store, &race.request));
		record.size = 1000 + turn;
		pthread_barrier_wait(&race.begin);
		r = bid_record_write(scene->store, &record);
		at_once = recorded(scene->store, 5);
		pthread_barrier_wait(&race.end);
		assert_int_equal(r, 0);
		assert_int_equal(at_once, record.size);
		assert_int_equal(recorded(scene->store, 5), record.size);
	}
	pthread_join(other, NULL);
	pthread_barrier_destroy(&race.begin);
	pthread_barrier_destroy(&race.end);
}

/* Who may read an empty file may lock it, and is in nobody's way for long. */
static void a_void_one_that_is_locked_is_replaced(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_of(5);
	struct bid_record record = record_of(5);
	char path[256], hex[BID_ID_HEX_MAX];
	int fd;

	write_batch(scene->store, 0, 10);
	bid_record_drop(scene->store, &request);
	snprintf(path, sizeof(path), "%s/store/.bidfs/record/17/%s.%s", scene->directory, bid_id_format(&request.id, hex) + 2,
		 bid_kind_name(request.kind));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	assert_int_equal(bid_record_unvoid(scene->store, &request), -EAGAIN);
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	assert_int_equal(recorded(scene->store, 5), 5);
	close(fd);
}

static void drop(struct bid_store *store, struct bid_record_amends *amends, unsigned number)
{
	struct bid_request request = request_of(number);

	bid_record_drop(store, &request);
	assert_true(bid_record_is_void(store, &request));
	assert_int_equal(bid_record_amends_void(amends, &request), 0);
}

static void voided_records_leave_the_packs(void **state)
{
	struct store_scene *scene = *state;
	struct bid_store *other = open_again(scene, 0);
	struct bid_record_amends *amends = amends_of(scene->store);
	struct bid_record record = record_of(8);

	write_batch(scene->store, 0, 100);
	write_batch(scene->store, 100, 20);
	for (unsigned i = 5; i < 120; i += 50)
		drop(scene->store, amends, i);
	drop(scene->store, amends, 8);
	record.size = 888;
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 1);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	for (unsigned i = 0; i < 120; i++)
		assert_int_equal(recorded(other, i), i % 50 == 5 ? -ENOENT : i == 8 ? 888 : (json_int_t)i);
	/* it comes again as any other */
	write_batch(scene->store, 5, 1);
	assert_int_equal(recorded(other, 5), 5);

	/* nothing is left of the last */
	for (unsigned i = 0; i < 120; i++)
		if (recorded(scene->store, i) >= 0 && i != 5 && i != 8)
			drop(scene->store, amends, i);
	drop(scene->store, amends, 8);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 1);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 0);
	bid_record_amends_free(amends);
	bid_store_free(other);
}

/* What cannot be read may say what is to be no more. */
static void beside_an_unknown_pack_voids_stay(void **state)
{
	struct store_scene *scene = *state;
	struct bid_record_amends *amends = amends_of(scene->store);

	write_batch(scene->store, 0, 10);
	run(scene, "cd store/.bidfs/pack && cp * 0123456789abcdef && printf '\\002' | "
		   "dd of=0123456789abcdef bs=1 seek=8 conv=notrunc status=none");
	drop(scene->store, amends, 3);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(recorded(scene->store, 3), -ENOENT);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 1);
	/* and it would have come again */
	run(scene, "printf '\\001' | dd of=store/.bidfs/pack/0123456789abcdef bs=1 seek=8 conv=notrunc status=none");
	assert_int_equal(recorded(scene->store, 3), -ENOENT);
	bid_record_amends_free(amends);
}

/* Packs stay as they are, and digests go to files. */
static void without_the_lock_nothing_is_merged_or_lost(void **state)
{
	struct store_scene *scene = *state;
	struct bid_record_amends *amends = amends_of(scene->store);
	struct bid_request request = request_of(5);
	char said[64];
	int hold;

	write_batch(scene->store, 0, 10);
	run(scene, "rm store/.bidfs/pack.lock && mkdir store/.bidfs/pack.lock");
	assert_int_equal(bid_packs_hold(scene->store, BID_PACKS_WAIT_MS, &hold), -EISDIR);
	write_batch(scene->store, 10, 10);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(recorded(scene->store, i), i);
	assert_int_equal(bid_record_amends_digest(amends, &request, "xxh3-128:5"), 0);
	assert_int_equal(bid_record_amends_write(amends), -EISDIR);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	recorded_digest(scene->store, 5, said);
	assert_string_equal(said, "xxh3-128:5");
	bid_record_amends_free(amends);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
	const struct CMUnitTest tests[] = {
		TEST(digests_are_amended_in_the_pack),
		TEST(few_digests_leave_the_packs_alone),
		TEST(amends_of_some_ids_leave_the_packs_alone),
		TEST(a_record_is_not_taken_for_a_void_one),
		TEST(what_is_written_while_a_void_one_goes_stays),
		TEST(a_void_one_that_is_locked_is_replaced),
		TEST(voided_records_leave_the_packs),
		TEST(beside_an_unknown_pack_voids_stay),
		TEST(without_the_lock_nothing_is_merged_or_lost),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
