// SPDX-License-Identifier: LGPL-2.1-or-later
/* The packs of a store: who writes and merges them loses nothing, and is in nobody's way. */
#include "pack_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk/pack/packs.h"
#include "disk/record.h"

enum { BATCHES = 40, WRITERS = 3, EACH_WRITES = 25, CHANGES = 1000 };

static void what_changes_gets_a_file_of_its_own(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_of(7);
	struct bid_store *other = open_again(scene, 0);
	struct bid_record record = record_of(7);
	json_t *json;

	assert_int_equal(recorded(other, 7), -ENOENT);
	write_batch(scene->store, 0, 100);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	assert_int_equal(count_files(scene, ".bidfs/record"), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_true(recorded(scene->store, i) == i && recorded(other, i) == i);
	assert_int_equal(recorded(other, 100), -ENOENT);

	/* dropped, and recorded again, by itself and in a batch */
	bid_record_drop(scene->store, &request);
	assert_int_equal(recorded(other, 7), -ENOENT);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 1);
	record.size = 777;
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	assert_int_equal(recorded(other, 7), 777);
	bid_record_drop(scene->store, &request);
	assert_int_equal(recorded(other, 7), -ENOENT);
	write_batch(scene->store, 7, 2);
	assert_int_equal(recorded(other, 7), 7);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 2);

	/* one word of it changes, the others stay */
	request = request_of(9);
	assert_int_equal(bid_record_set(scene->store, &request, "digest", "xxh3-128:0"), 0);
	assert_int_equal(bid_record_read(other, &request, &json), 0);
	assert_string_equal(json_string_value(json_object_get(json, "digest")), "xxh3-128:0");
	assert_string_equal(json_string_value(json_object_get(json, "file")), "/usr/bin/program");
	json_decref(json);

	/* what has no pack leaves nothing behind */
	record = record_of(5000);
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	bid_record_drop(scene->store, &record.request);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 3);
	bid_store_free(other);
}

static void who_merges_does_so_alone(void **state)
{
	struct store_scene *scene = *state;
	int hold;

	write_batch(scene->store, 0, 10);
	assert_int_equal(bid_packs_hold(scene->store, 0, &hold), 0);
	write_batch(scene->store, 10, 10);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	close(hold);
	write_batch(scene->store, 20, 10);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(recorded(scene->store, i), i);
}

/* Who may read the directory may lock it, and that is everybody. */
static void who_may_only_read_is_in_nobodys_way(void **state)
{
	struct store_scene *scene = *state;
	char path[128];
	struct stat st;
	int dir, hold, other;

	write_batch(scene->store, 0, 10);
	snprintf(path, sizeof(path), "%s/store/.bidfs/pack", scene->directory);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	assert_int_equal(flock(dir, LOCK_EX | LOCK_NB), 0);
	write_batch(scene->store, 10, 10);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	assert_int_equal(bid_packs_hold(scene->store, 0, &hold), 0);
	assert_int_equal(fstat(hold, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	/* and who may write waits for a while only */
	assert_int_equal(bid_packs_hold(scene->store, 50, &other), -EBUSY);
	close(hold);

	run(scene, "rm store/.bidfs/pack.lock && chmod 0775 store/.bidfs/pack");
	assert_int_equal(bid_packs_hold(scene->store, 0, &hold), 0);
	assert_int_equal(fstat(hold, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0660);
	close(hold);
	close(dir);
}

static void packs_become_one_before_they_are_many(void **state)
{
	struct store_scene *scene = *state;
	struct bid_store *other = open_again(scene, 0);
	unsigned n = 0, most = 0;

	for (unsigned i = 1; i <= BATCHES; i++) {
		unsigned files;

		write_batch(scene->store, n, i % 7 + 2);
		n += i % 7 + 2;
		files = count_files(scene, ".bidfs/pack");
		most = files > most ? files : most;
		/* who had them open finds all, too */
		for (unsigned j = 0; j < n; j += 13)
			assert_int_equal(recorded(other, j), j);
	}
	for (unsigned j = 0; j < n; j++)
		assert_int_equal(recorded(other, j), j);
	assert_true(most <= 6);
	bid_store_free(other);
}

/* The times of the directory do not tell two changes apart between which its clock has not ticked. */
static void changes_in_quick_succession_are_seen(void **state)
{
	struct store_scene *scene = *state;
	char here[128], away[128];

	write_batch(scene->store, 0, 10);
	run(scene, "mv store/.bidfs/pack/* store/.bidfs/pack/0123456789abcdef");
	snprintf(here, sizeof(here), "%s/store/.bidfs/pack/0123456789abcdef", scene->directory);
	snprintf(away, sizeof(away), "%s/store/.bidfs/pack/away", scene->directory);
	for (unsigned i = 0; i < CHANGES; i++) {
		assert_int_equal(recorded(scene->store, 5), 5);
		assert_int_equal(rename(here, away), 0);
		assert_int_equal(recorded(scene->store, 5), -ENOENT);
		assert_int_equal(rename(away, here), 0);
	}
}

/* Its own numbers; exits. */
static void writer(const struct store_scene *scene, unsigned number)
{
	struct bid_store *store = open_again(scene, BID_STORE_WRITE);

	for (unsigned i = 0; i < EACH_WRITES; i++) {
		unsigned first = 10000 + (i * WRITERS + number) * 10;

		write_batch(store, first, 10);
		for (unsigned j = 0; j < 10; j++)
			if (recorded(store, first + j) != first + j)
				_exit(1);
	}
	_exit(0);
}

static void several_who_merge_at_once_lose_nothing(void **state)
{
	struct store_scene *scene = *state;
	pid_t writers[WRITERS];
	unsigned running = WRITERS;

	write_batch(scene->store, 0, 10);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = fork();
		assert_true(writers[i] >= 0);
		if (writers[i] == 0)
			writer(scene, i);
	}
	while (running > 0) {
		int status;

		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(recorded(scene->store, i), i);
		if (waitpid(-1, &status, WNOHANG) > 0) {
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
			running--;
		}
	}
	for (unsigned i = 10000; i < 10000 + WRITERS * EACH_WRITES * 10; i++)
		assert_int_equal(recorded(scene->store, i), i);
}

/* Anything may lie in the place of packs. */
static void what_is_no_pack_is_passed_over(void **state)
{
	struct store_scene *scene = *state;

	write_batch(scene->store, 0, 10);
	run(scene, "cd store/.bidfs/pack && mkdir 0123456789abcdef && mkfifo 1123456789abcdef && touch 2123456789abcdef other && "
		   "ln -s /etc/passwd 3123456789abcdef && head -c 99999 /dev/urandom > 4123456789abcdef");
	assert_int_equal(recorded(scene->store, 9), 9);
	write_batch(scene->store, 10, 10);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(recorded(scene->store, i), i);
	run(scene, "rm -rf store/.bidfs/pack");
	assert_int_equal(recorded(scene->store, 9), -ENOENT);
	write_batch(scene->store, 0, 10);
	assert_int_equal(recorded(scene->store, 9), 9);
	run(scene, "rm -rf store/.bidfs/pack && touch store/.bidfs/pack");
	assert_int_equal(recorded(scene->store, 9), -ENOENT);
	bid_store_free(scene->store);
	scene->store = open_again(scene, BID_STORE_WRITE);
	write_batch(scene->store, 0, 10);
	assert_int_equal(recorded(scene->store, 9), 9);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
	const struct CMUnitTest tests[] = {
		TEST(what_changes_gets_a_file_of_its_own),  TEST(who_merges_does_so_alone),
		TEST(who_may_only_read_is_in_nobodys_way),  TEST(packs_become_one_before_they_are_many),
		TEST(changes_in_quick_succession_are_seen), TEST(several_who_merge_at_once_lose_nothing),
		TEST(what_is_no_pack_is_passed_over),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
