// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where the system has no more watches, or no more descriptors: fewer ids are watched, and what is not says so. */
#include "store_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bid/watch.h>

#include "base/cleanup.h"
#include "base/io.h"

#define WATCHES	  "/proc/sys/user/max_inotify_watches"
#define INSTANCES "/proc/sys/user/max_inotify_instances"

enum { ENOUGH = 1000 };

static int limit_to(const char *file, unsigned n)
{
	bid_auto_fd int fd = open(file, O_WRONLY | O_CLOEXEC);
	char text[16];

	snprintf(text, sizeof(text), "%u\n", n);
	return fd < 0 ? -errno : bid_pwrite_full(fd, text, strlen(text), 0);
}

static void tell(void *user, const struct bid_id *id, bool changed, void *note)
{
}

static struct bid_watch *begin(struct store_scene *scene)
{
	struct bid_watch *watch = NULL;
	int r = bid_watch_new(scene->store, 10, tell, NULL, &watch);

	if (r == -EOPNOTSUPP)
		skip(); /* /tmp is no local file system */
	assert_int_equal(r, 0);
	return watch;
}

static int add(struct store_scene *scene, struct bid_watch *watch, const char *hex)
{
	struct bid_request request = request_for(hex, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	int r;

	assert_int_equal(bid_store_find(scene->store, &request, &file), 0);
	r = bid_watch_add(watch, &request.id, &file);
	bid_file_release(&file);
	return r;
}

static bool has(struct bid_watch *watch, const char *hex)
{
	struct bid_id id = id_of(hex);

	return bid_watch_has(watch, &id);
}

static void without_watches_an_older_id_gives_up_its_own(void **state)
{
	struct store_scene *scene = *state;
	struct bid_watch *watch;
	unsigned needed = 0;
	int error;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "b", "usr/bin/b", ID_B, "elf");
	/* how many one needs is found out here: all but the last are too few */
	watch = begin(scene);
	assert_int_equal(limit_to(WATCHES, 0), 0);
	while (add(scene, watch, ID_A) == -ENOSPC) {
		assert_false(has(watch, ID_A));
		assert_int_equal(bid_watch_count(watch, &error), 0);
		assert_int_equal(error, -ENOSPC);
		assert_true(++needed < ENOUGH);
		assert_int_equal(limit_to(WATCHES, needed), 0);
	}
	assert_true(needed > 2 && has(watch, ID_A));
	bid_watch_free(watch);

	watch = begin(scene);
	assert_int_equal(add(scene, watch, ID_A), 0);
	assert_int_equal(add(scene, watch, ID_B), -ENOSPC);
	assert_true(has(watch, ID_A) && !has(watch, ID_B));
	assert_int_equal(bid_watch_count(watch, &error), 1);
	assert_int_equal(error, -ENOSPC);
	/* as many as there were have to do: the next one takes the place of the oldest, and its watches */
	assert_int_equal(add(scene, watch, ID_B), 0);
	assert_true(has(watch, ID_B) && !has(watch, ID_A));
	assert_int_equal(add(scene, watch, ID_A), 0);
	assert_int_equal(bid_watch_count(watch, &error), 1);
	bid_watch_free(watch);
	assert_int_equal(limit_to(WATCHES, ENOUGH), 0);
}

static void without_descriptors_nothing_is_watched_and_later_it_is(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_for(ID_A, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	struct rlimit limit, few;
	struct bid_watch *watch = NULL;
	int error, next, r = -EMFILE;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "b", "usr/bin/b", ID_B, "elf");
	watch = begin(scene);
	assert_int_equal(bid_store_find(scene->store, &request, &file), 0);
	next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	/* wherever it is that there are none left, nothing is watched by halves */
	for (few.rlim_cur = (rlim_t)next; r < 0; few.rlim_cur++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		r = bid_watch_add(watch, &request.id, &file);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		/* whose file it is cannot be found out, or that it is watched */
		assert_true(r == 0 || r == -ENOENT || r == -EMFILE);
		assert_int_equal(bid_watch_count(watch, &error), r == 0);
		assert_true(has(watch, ID_A) == (r == 0));
	}
	assert_true(few.rlim_cur > (rlim_t)next + 1);
	bid_file_release(&file);
	/* that was of the moment, and makes no id less */
	assert_int_equal(add(scene, watch, ID_B), 0);
	assert_true(has(watch, ID_A) && has(watch, ID_B));
	bid_watch_free(watch);
}

static void without_an_inotify_there_is_no_watch(void **state)
{
	struct store_scene *scene = *state;
	struct bid_watch *watch = begin(scene), *other = NULL;

	bid_watch_free(watch);
	assert_int_equal(limit_to(INSTANCES, 0), 0);
	assert_int_equal(bid_watch_new(scene->store, 10, tell, NULL, &other), -EMFILE);
	assert_null(other);
	assert_int_equal(limit_to(INSTANCES, ENOUGH), 0);
	bid_watch_free(begin(scene));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_watches_an_older_id_gives_up_its_own, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(without_descriptors_nothing_is_watched_and_later_it_is, store_scene_begin,
						store_scene_end),
		cmocka_unit_test_setup_teardown(without_an_inotify_there_is_no_watch, store_scene_begin, store_scene_end),
	};

	/* a user namespace has limits of its own, which nobody else feels */
	if (unshare(CLONE_NEWUSER) < 0 || limit_to(WATCHES, ENOUGH) < 0 || limit_to(INSTANCES, ENOUGH) < 0) {
		printf("skipped: no limits of its own: %s\n", strerror(errno));
		return 77;
	}
	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
