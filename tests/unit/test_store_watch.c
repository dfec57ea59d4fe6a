// SPDX-License-Identifier: LGPL-2.1-or-later
/* Watched ids, and what is done to a store behind its back. */
#include "store_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bid/watch.h>

#define PLACE "store/usr/bin/a/" ID_A

enum { NOTES = 64, WAIT_MS = 20000 };

/* What was told. */
struct told {
	pthread_mutex_t lock;
	unsigned n;
	struct bid_id ids[NOTES];
	bool changed[NOTES];
};

static struct told told = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void tell(void *user, const struct bid_id *id, bool changed, void *note)
{
	pthread_mutex_lock(&told.lock);
	told.ids[told.n % NOTES] = *id;
	told.changed[told.n++ % NOTES] = changed;
	pthread_mutex_unlock(&told.lock);
	free(note);
}

static unsigned count(void)
{
	unsigned n;

	pthread_mutex_lock(&told.lock);
	n = told.n;
	pthread_mutex_unlock(&told.lock);
	return n;
}

static struct bid_watch *begin(struct store_scene *scene, unsigned max)
{
	struct bid_watch *watch = NULL;
	int r;

	told.n = 0;
	r = bid_watch_new(scene->store, max, tell, NULL, &watch);
	if (r == -EOPNOTSUPP)
		skip(); /* /tmp is no local file system */
	assert_int_equal(r, 0);
	return watch;
}

/* Find the artifact and watch it, as whoever keeps an answer does. */
static int watch_one(struct store_scene *scene, struct bid_watch *watch, const char *hex, enum bid_kind kind, bool *ret_holds)
{
	struct bid_request request = request_for(hex, kind);
	struct bid_file file = BID_FILE_NONE;
	uint64_t mark;
	int r;

	assert_int_equal(bid_store_find(scene->store, &request, &file), 0);
	r = bid_watch_add(watch, &request.id, &file);
	bid_file_release(&file);
	mark = bid_watch_mark(watch);
	assert_int_equal(bid_store_find(scene->store, &request, &file), 0);
	*ret_holds = bid_watch_note(watch, &request.id, mark, &file.st, NULL, NULL, NULL);
	bid_file_release(&file);
	return r;
}

static void keep(struct store_scene *scene, struct bid_watch *watch, const char *hex)
{
	bool holds;

	assert_int_equal(watch_one(scene, watch, hex, BID_KIND_ELF, &holds), 0);
	assert_true(holds);
}

static void await(unsigned n)
{
	for (int ms = 0; count() < n && ms < WAIT_MS; ms++)
		poll(NULL, 0, 1);
	assert_int_equal(count(), n);
}

/* After @command @id, and nothing else, is told of. */
static void assert_told(struct store_scene *scene, struct bid_watch *watch, const char *hex, const char *command)
{
	struct bid_id id = id_of(hex);
	unsigned before = count();

	run(scene, "%s", command);
	await(before + 1);
	assert_true(bid_id_equal(&told.ids[before % NOTES], &id));
	assert_true(told.changed[before % NOTES]);
	assert_false(bid_watch_has(watch, &id));
}

/* The same for an id of which no file is watched. */
static void keep_names(struct bid_watch *watch, const char *hex)
{
	struct bid_id id = id_of(hex);

	assert_int_equal(bid_watch_add_names(watch, &id), 0);
	assert_true(bid_watch_has(watch, &id));
}

static void begin_anew(struct store_scene *scene)
{
	run(scene, "rm -rf store/usr store/usr2 'store/[debuginfod]' 'store/[vdso]' store/.build-id");
	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "b", "usr/bin/b", ID_B, "elf");
}

static void every_change_is_told(void **state)
{
	static const char *const commands[] = {
		"touch " PLACE "/elf",
		"echo >> " PLACE "/elf",
		"chmod u-w " PLACE "/elf",
		"ln " PLACE "/elf other && rm other",
		"cp a a2 && mv a2 " PLACE "/elf",
		"ln a.debug " PLACE "/debug",
		"mv " PLACE " store/usr/bin/a/elsewhere",
		"mv store/usr/bin/a store/usr/bin/c",
		"mkdir store/usr/bin/a/" ID_LONG,
		"rm -r store/usr/bin/a",
		"rm store/.build-id/aa/*",
		"mv store/.build-id/aa store/.build-id/ac",
		"ln -sfn ../../usr/bin/d/" ID_A " store/.build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"mkdir -p 'store/[debuginfod]/" ID_A "'",
		"mkdir -p 'store/[vdso]/" ID_A "'",
	};
	struct store_scene *scene = *state;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct bid_watch *watch;

		begin_anew(scene);
		if (strstr(commands[i], "mkdir"))
			run(scene, "mkdir 'store/[debuginfod]' 'store/[vdso]'");
		watch = begin(scene, 10);
		keep(scene, watch, ID_B);
		keep(scene, watch, ID_A);
		assert_told(scene, watch, ID_A, commands[i]);
		bid_watch_free(watch);
		assert_int_equal(told.n, 2);
	}
}

/* A directory on the way to both, or one that would have been in the way of both. */
static void what_concerns_all_is_told_of_all(void **state)
{
	static const char *const commands[] = { "mv store/usr store/usr2", "mv store/.build-id store/usr2",
						"mkdir 'store/[debuginfod]'" };
	struct store_scene *scene = *state;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct bid_watch *watch;

		begin_anew(scene);
		watch = begin(scene, 10);
		keep(scene, watch, ID_B);
		keep(scene, watch, ID_A);
		run(scene, "%s", commands[i]);
		await(2);
		bid_watch_free(watch);
	}
}

static void written_by_another_name(void **state)
{
	struct store_scene *scene = *state;
	struct bid_watch *watch;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	run(scene, "ln " PLACE "/elf other && cp a a.copy");
	watch = begin(scene, 10);
	keep(scene, watch, ID_A);
	assert_told(scene, watch, ID_A, "cat a.copy > other");
	keep(scene, watch, ID_A);
	assert_told(scene, watch, ID_A, "rm other");
	bid_watch_free(watch);
}

/* Where a link should be is the directory itself: what is a link mostly is not looked at, but this is. */
static void a_directory_instead_of_a_link(void **state)
{
	static const char at[] = "store/.build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	struct store_scene *scene = *state;
	struct bid_watch *watch;
	char command[PATH_MAX];

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	run(scene, "rm %s && mv " PLACE " %s", at, at);
	watch = begin(scene, 10);
	keep(scene, watch, ID_A);
	snprintf(command, sizeof(command), "ln a.debug %s/debug", at);
	assert_told(scene, watch, ID_A, command);
	bid_watch_free(watch);
}

static void what_leads_to_others_is_not_told(void **state)
{
	struct store_scene *scene = *state;
	struct bid_id id = id_of(ID_A);
	struct bid_watch *watch;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "b", "usr/bin/b", ID_B, "elf");
	run(scene, "mkdir 'store/[debuginfod]'");
	watch = begin(scene, 10);
	keep(scene, watch, ID_A);
	keep(scene, watch, ID_B);
	run(scene, "mkdir -p store/usr/bin/c store/usr/lib store/.build-id/ab 'store/[debuginfod]/" ID_LONG "'");
	run(scene, "touch store/.build-id/aa/0000 store/usr/bin/other store/.bidfs/x && cat " PLACE "/elf > /dev/null");
	/* those before it would have been told of first */
	assert_told(scene, watch, ID_B, "touch store/usr/bin/b/" ID_B "/elf");
	assert_int_equal(count(), 1);
	assert_true(bid_watch_has(watch, &id));
	bid_watch_free(watch);
}

static void the_least_recently_asked_for_goes(void **state)
{
	struct store_scene *scene = *state;
	struct bid_id a = id_of(ID_A), b = id_of(ID_B);
	struct bid_watch *watch;
	int error;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "b", "usr/bin/b", ID_B, "elf");
	perf_adds(scene, "short", "usr/bin/s", ID_SHORT, "elf");
	watch = begin(scene, 2);
	keep(scene, watch, ID_A);
	keep(scene, watch, ID_B);
	assert_true(bid_watch_has(watch, &a));
	keep(scene, watch, ID_SHORT);
	assert_int_equal(bid_watch_count(watch, &error), 2);
	assert_int_equal(error, 0);
	assert_int_equal(count(), 1);
	assert_true(bid_id_equal(&told.ids[0], &b));
	assert_false(told.changed[0]);
	assert_false(bid_watch_has(watch, &b));
	bid_watch_free(watch);
}

static void names_alone_are_watched(void **state)
{
	static const char *const commands[] = { "ln a.debug " PLACE "/debug", "mkdir store/usr/bin/a/" ID_LONG,
						"mv store/usr/bin/a store/usr/bin/c", "rm store/.build-id/aa/*" };
	struct store_scene *scene = *state;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct bid_id id = id_of(ID_A), found;
		struct bid_watch *watch;

		begin_anew(scene);
		watch = begin(scene, 10);
		keep_names(watch, ID_A);
		assert_true(bid_watch_id_in(watch, "usr/bin/a", &found));
		assert_true(bid_id_equal(&found, &id));
		assert_true(bid_watch_note(watch, &id, bid_watch_mark(watch), NULL, "usr/bin/a", NULL, NULL));
		assert_false(bid_watch_id_in(watch, "usr/bin", &found));
		assert_false(bid_watch_id_in(watch, "usr/bin/b", &found));
		assert_false(bid_watch_id_in(watch, "", &found));
		assert_told(scene, watch, ID_A, commands[i]);
		assert_false(bid_watch_id_in(watch, "usr/bin/a", &found));
		id = id_of(ID_SHORT);
		assert_int_equal(bid_watch_add_names(watch, &id), -ENOENT);
		bid_watch_free(watch);
	}
}

static void names_alone_take_no_place(void **state)
{
	struct store_scene *scene = *state;
	struct bid_id b = id_of(ID_B);
	struct bid_watch *watch;
	int error;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "b", "usr/bin/b", ID_B, "elf");
	watch = begin(scene, 1);
	keep(scene, watch, ID_A);
	assert_int_equal(bid_watch_add_names(watch, &b), -EAGAIN);
	keep_names(watch, ID_A);
	assert_int_equal(bid_watch_count(watch, &error), 1);
	assert_int_equal(error, 0);
	keep(scene, watch, ID_B);
	bid_watch_free(watch);
}

/* Take the build away that perf_adds() made, and return at once. */
static void take_away(const struct store_scene *scene, bool all)
{
	char from[PATH_MAX], to[PATH_MAX];

	snprintf(from, sizeof(from), "%s/%s", scene->directory, all ? "store/usr" : PLACE "/elf");
	snprintf(to, sizeof(to), "%s/%s", scene->directory, all ? "store/usr2" : "elf");
	assert_int_equal(rename(from, to), 0);
}

/* And is not any more as soon as the call that changes it has returned. */
static void where_a_build_lies_is_known(void **state)
{
	struct store_scene *scene = *state;
	struct bid_watch *watch = begin(scene, 8);
	struct bid_id a = id_of(ID_A);
	char where[PATH_MAX];

	for (unsigned turn = 0; turn < 50; turn++) {
		begin_anew(scene);
		assert_int_equal(bid_watch_where(watch, &a, where, sizeof(where)), -ENOENT);
		keep_names(watch, ID_A);
		assert_int_equal(bid_watch_where(watch, &a, where, sizeof(where)), 0);
		assert_string_equal(where, "usr/bin/a/" ID_A);
		assert_int_equal(bid_watch_where(watch, &a, where, strlen(where)), -ENAMETOOLONG);
		take_away(scene, turn % 2);
		assert_int_equal(bid_watch_where(watch, &a, where, sizeof(where)), -ENOENT);
	}
	/* a link that leads to no build */
	keep_names(watch, ID_A);
	assert_int_equal(bid_watch_where(watch, &a, where, sizeof(where)), -ENOENT);
	bid_watch_free(watch);
}

/* Open the definitions of the one build for writing, as perf does, and write one byte through a mapping or none. */
static void use_probes(const struct store_scene *scene, bool writes)
{
	char path[PATH_MAX], *mapped;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/probes", scene->directory, PLACE);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	if (writes) {
		mapped = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_true(mapped != MAP_FAILED);
		*mapped = '#';
		munmap(mapped, 1);
	}
	close(fd);
}

static void only_who_writes_definitions_changes_them(void **state)
{
	struct store_scene *scene = *state;
	struct bid_id a = id_of(ID_A);
	struct bid_watch *watch;
	char where[PATH_MAX];
	bool holds;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	run(scene, "echo '%%sdt_a:one=one' > " PLACE "/probes; sleep 0.1");
	watch = begin(scene, 8);
	assert_int_equal(watch_one(scene, watch, ID_A, BID_KIND_PROBES, &holds), 0);
	assert_true(holds);
	use_probes(scene, false);
	/* has heard of it then */
	assert_int_equal(bid_watch_where(watch, &a, where, sizeof(where)), 0);
	assert_int_equal(count(), 0);
	use_probes(scene, true);
	assert_int_equal(bid_watch_where(watch, &a, where, sizeof(where)), -ENOENT);
	await(1);
	bid_watch_free(watch);
}

static void what_was_found_before_does_not_count(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_for(ID_A, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	struct bid_watch *watch;
	uint64_t before;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	watch = begin(scene, 2);
	before = bid_watch_mark(watch);
	assert_int_equal(bid_store_find(scene->store, &request, &file), 0);
	assert_false(bid_watch_note(watch, &request.id, before, NULL, NULL, NULL, NULL));
	assert_int_equal(bid_watch_add(watch, &request.id, &file), 0);
	assert_false(bid_watch_note(watch, &request.id, before, NULL, NULL, NULL, NULL));
	assert_true(bid_watch_note(watch, &request.id, bid_watch_mark(watch), &file.st, NULL, NULL, NULL));
	assert_true(bid_watch_note(watch, &request.id, bid_watch_mark(watch), NULL, "usr/bin/a/" ID_A, NULL, NULL));
	assert_false(bid_watch_note(watch, &request.id, bid_watch_mark(watch), NULL, "usr/bin/b/" ID_A, NULL, NULL));
	assert_false(bid_watch_note(watch, &request.id, bid_watch_mark(watch), NULL, "bin/a/" ID_A, NULL, NULL));
	assert_false(bid_watch_note(watch, &request.id, bid_watch_mark(watch), NULL, "[debuginfod]/" ID_A, NULL, NULL));
	file.st.st_ino++;
	assert_false(bid_watch_note(watch, &request.id, bid_watch_mark(watch), &file.st, NULL, NULL, NULL));
	bid_file_release(&file);
	bid_watch_free(watch);
}

static void of_a_lower_store_nothing_is_watched(void **state)
{
	struct store_scene *scene = *state;
	struct bid_watch *watch;
	char lower[128];
	bool holds;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	run(scene, "mkdir lower && mv store/usr store/.build-id lower");
	snprintf(lower, sizeof(lower), "%s/lower", scene->directory);
	assert_int_equal(bid_store_add_lower(scene->store, lower), 0);
	watch = begin(scene, 2);
	assert_int_equal(watch_one(scene, watch, ID_A, BID_KIND_ELF, &holds), -ENOENT);
	assert_false(holds);
	bid_watch_free(watch);
	run(scene, "rm -r lower");
}

/* More changes than the kernel remembers: all are told of. */
static void nothing_is_missed_when_much_happens(void **state)
{
	struct store_scene *scene = *state;
	struct bid_watch *watch;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "b", "usr/bin/b", ID_B, "elf");
	watch = begin(scene, 10);
	keep(scene, watch, ID_A);
	keep(scene, watch, ID_B);
	/* the thread cannot hear while the lock of what it tells is held */
	pthread_mutex_lock(&told.lock);
	run(scene,
	    "touch " PLACE "/elf && cd store/usr/bin && bash -c '"
	    "for ((n = $(cat /proc/sys/fs/inotify/max_queued_events); n > -100; n -= 100)); do touch {1..50}; rm {1..50}; done'");
	run(scene, "touch store/usr/bin/b/" ID_B "/elf");
	pthread_mutex_unlock(&told.lock);
	await(2);
	bid_watch_free(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_change_is_told, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(what_concerns_all_is_told_of_all, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(written_by_another_name, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(a_directory_instead_of_a_link, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(what_leads_to_others_is_not_told, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(the_least_recently_asked_for_goes, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(names_alone_are_watched, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(names_alone_take_no_place, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(where_a_build_lies_is_known, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(only_who_writes_definitions_changes_them, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(what_was_found_before_does_not_count, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(of_a_lower_store_nothing_is_watched, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(nothing_is_missed_when_much_happens, store_scene_begin, store_scene_end),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
