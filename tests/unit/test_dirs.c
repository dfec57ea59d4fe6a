// SPDX-License-Identifier: LGPL-2.1-or-later
/* The cache of open directories: no removed directory, a bounded number, none closed while in use. */
#include "store_scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "disk/dirs.h"

enum {
	KEPT_MAX = 1024, /* as many as there are places for */
	MANY = 3000, /* more than there are places for */
	THREADS = 4,
	TURNS = 2000,
};

static unsigned open_files(void)
{
	bid_auto_dir DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	return n;
}

static struct bid_dir open_dir(const struct store_scene *scene, const char *path, bool make)
{
	struct bid_dir dir = BID_DIR_NONE;

	assert_int_equal(bid_dir_open(scene->store, path, make, NULL, &dir), 0);
	return dir;
}

/* Is @dir the directory @path now? */
static bool is_at(const struct store_scene *scene, const struct bid_dir *dir, const char *path)
{
	struct stat one, other;

	assert_int_equal(fstat(dir->fd, &one), 0);
	assert_int_equal(bid_store_stat(scene->store, path, &other), 0);
	return one.st_ino == other.st_ino;
}

static void test_removed_directory_is_opened_again(void **state)
{
	struct store_scene *scene = *state;
	struct bid_dir dir, gone;

	bid_dirs_keep(scene->store);
	gone = open_dir(scene, "usr/bin", true);
	dir = open_dir(scene, "usr/bin", false);
	assert_int_equal(dir.fd, gone.fd);
	bid_dir_release(&dir);
	run(scene, "rm -r store/usr && mkdir -p store/usr/bin");
	/* also for a lookup while another thread has the old one */
	dir = open_dir(scene, "usr/bin", false);
	assert_true(is_at(scene, &dir, "usr/bin"));
	bid_dir_release(&dir);
	bid_dir_release(&gone);
	run(scene, "rm -r store/usr");
	assert_int_equal(bid_dir_open(scene->store, "usr/bin", false, NULL, &dir), -ENOENT);
	dir = open_dir(scene, "usr/bin", true);
	assert_true(is_at(scene, &dir, "usr/bin"));
	bid_dir_release(&dir);
	bid_dirs_drop(scene->store);
}

static void test_cache_is_bounded(void **state)
{
	struct store_scene *scene = *state;
	struct bid_dir used, dir;
	unsigned before = open_files();
	char path[32];

	bid_dirs_keep(scene->store);
	bid_dirs_keep(scene->store);
	used = open_dir(scene, "used", true);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "many/%u", i);
		dir = open_dir(scene, path, true);
		assert_true(is_at(scene, &dir, path));
		bid_dir_release(&dir);
	}
	assert_in_range(open_files(), before + KEPT_MAX / 2, before + KEPT_MAX + 1);
	/* another one has replaced it in the cache, but it is in use */
	assert_true(is_at(scene, &used, "used"));
	assert_int_equal(mkdirat(used.fd, "below", 0755), 0);
	bid_dirs_drop(scene->store);
	assert_in_range(open_files(), before + KEPT_MAX / 2, before + KEPT_MAX + 1);
	/* the last user of the cache */
	bid_dirs_drop(scene->store);
	assert_int_equal(open_files(), before + 1);
	assert_true(is_at(scene, &used, "used"));
	bid_dir_release(&used);
	assert_int_equal(open_files(), before);
}

static void test_cache_without_users_is_empty(void **state)
{
	struct store_scene *scene = *state;
	unsigned before = open_files();
	struct rlimit limit, low;
	struct bid_dir dir;

	dir = open_dir(scene, "usr/bin", true);
	bid_dir_release(&dir);
	assert_int_equal(open_files(), before);

	/* few descriptors: keep none */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){ .rlim_cur = 1000, .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	bid_dirs_keep(scene->store);
	dir = open_dir(scene, "usr/bin", false);
	bid_dir_release(&dir);
	assert_int_equal(open_files(), before);
	bid_dirs_drop(scene->store);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

struct crowd {
	struct store_scene *scene;
	atomic_uint wrong;
};

/* If the number of the descriptor was reused, the file belongs to another directory. */
static void *use(void *user)
{
	struct crowd *crowd = user;

	for (unsigned i = 0; i < TURNS; i++) {
		struct bid_dir dir = BID_DIR_NONE;
		struct stat st;
		char path[128];
		int r;

		snprintf(path, sizeof(path), "many/%u", i % 7);
		r = bid_dir_open(crowd->scene->store, path, true, NULL, &dir);
		/* removed again each time that it was made */
		if (r == -ESTALE)
			continue;
		if (r < 0)
			atomic_fetch_add(&crowd->wrong, 1);
		else if (fstat(dir.fd, &st) < 0 || !S_ISDIR(st.st_mode))
			atomic_fetch_add(&crowd->wrong, 1);
		/* whoever is first */
		if (i % 5 == 0) {
			snprintf(path, sizeof(path), "%s/store/many/%u", crowd->scene->directory, i % 7);
			rmdir(path);
		}
		bid_dir_release(&dir);
	}
	return NULL;
}

static void test_threads_use_directories_removed_by_others(void **state)
{
	struct crowd crowd = { .scene = *state };
	unsigned before = open_files();
	pthread_t threads[THREADS];

	bid_dirs_keep(crowd.scene->store);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use, &crowd), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	bid_dirs_drop(crowd.scene->store);
	assert_int_equal(crowd.wrong, 0);
	assert_int_equal(open_files(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_removed_directory_is_opened_again, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_cache_is_bounded, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_cache_without_users_is_empty, store_scene_begin, store_scene_end),
		cmocka_unit_test_setup_teardown(test_threads_use_directories_removed_by_others, store_scene_begin, store_scene_end),
	};
	struct rlimit limit;

	/* as many as the cache wants, if allowed */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 2 * MANY) {
		limit.rlim_cur = limit.rlim_max < 2 * MANY ? limit.rlim_max : 2 * MANY;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur < 2 * MANY) {
		puts("skipped: too few descriptors allowed");
		return 77;
	}
	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
