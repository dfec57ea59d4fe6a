// SPDX-License-Identifier: LGPL-2.1-or-later
/* Scans of trees, their cache, and files without a path to open. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "disk/dirwalk.h"
#include "disk/scan/scan_cache.h"

enum { N_KEYS = 5000, STOP = 77 };

static ino_t stale; /* a file with open(2) but without statx(2), as on NFS */

/* In the place of the C library's. */
int fstat(int fd, struct stat *st)
{
	int r = fstatat(fd, "", st, AT_EMPTY_PATH);

	if (r == 0 && stale != 0 && st->st_ino == stale) {
		errno = ESTALE;
		return -1;
	}
	return r;
}

static uint64_t key_of(unsigned number)
{
	struct stat st = { .st_dev = 1, .st_ino = number, .st_size = 4096, .st_mtim = { 1000, number } };
	char name[16];

	snprintf(name, sizeof(name), "%u", number);
	return bid_scan_key("/usr/bin", 0, name, &st);
}

static struct bid_scan_entry entry_of(unsigned number)
{
	struct bid_scan_entry entry = { .key = key_of(number), .what = BID_SCAN_OTHER + number % 3 };

	if (entry.what == BID_SCAN_KNOWN) {
		entry.kind = number % 2 ? BID_KIND_ELF : BID_KIND_DEBUGINFO;
		entry.id_len = sizeof(number);
		memcpy(entry.id, &number, sizeof(number));
	}
	return entry;
}

/* Is the cached result of @number right? */
static bool is_right(const struct bid_scan_cache *cache, unsigned number)
{
	const struct bid_scan_entry expected = entry_of(number), *found = bid_scan_cache_find(cache, expected.key);

	return found && memcmp(found, &expected, sizeof(expected)) == 0;
}

static void fill(const struct store_fixture *fixture, unsigned n)
{
	struct bid_scan_found found[2] = { 0 };
	struct bid_scan_cache *cache;

	assert_int_equal(bid_scan_cache_load(fixture->store, "/usr", &cache), 0);
	assert_true(bid_scan_cache_is_empty(cache));
	for (unsigned i = 0; i < n; i++) {
		struct bid_scan_entry entry = entry_of(i);

		assert_int_equal(bid_scan_found_add(&found[i % 2], &entry, true), 0);
	}
	assert_int_equal(bid_scan_cache_save(fixture->store, cache, found, 2), 0);
	free(found[0].entries);
	free(found[1].entries);
	bid_scan_cache_free(cache);
}

static void test_results_are_cached(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_scan_cache *cache;
	struct stat st = { .st_dev = 1, .st_ino = 1, .st_size = 4096, .st_mtim = { 1000, 1 } };

	fill(fixture, N_KEYS);
	assert_int_equal(bid_scan_cache_load(fixture->store, "/usr", &cache), 0);
	for (unsigned i = 0; i < N_KEYS; i++)
		assert_true(is_right(cache, i));
	/* anything that differs is another file */
	for (unsigned i = 0; i < 9; i++) {
		struct stat other = st;

		other.st_dev += i == 0;
		other.st_ino += i == 1;
		other.st_size += i == 2;
		other.st_mtim.tv_nsec += i == 3;
		other.st_ctim.tv_nsec += i == 4;
		other.st_ctim.tv_sec += i == 5;
		assert_null(bid_scan_cache_find(
			cache, bid_scan_key(i == 6 ? "/usr/bi" : "/usr/bin", i == 8, i == 7 ? "n1" : "1", &other)));
	}
	bid_scan_cache_free(cache);
	/* of another tree */
	assert_int_equal(bid_scan_cache_load(fixture->store, "/usr/lib", &cache), 0);
	assert_true(bid_scan_cache_is_empty(cache));
	bid_scan_cache_free(cache);
}

/* The only file of the cache. */
static void find_file(const struct store_fixture *fixture, char *ret_path, size_t size)
{
	FILE *list;

	run(fixture, "ls -d store/.bidfs/scan/* > list");
	snprintf(ret_path, size, "%s/list", fixture->directory);
	list = fopen(ret_path, "re");
	assert_non_null(list);
	snprintf(ret_path, size, "%s/", fixture->directory);
	assert_non_null(fgets(ret_path + strlen(ret_path), (int)(size - strlen(ret_path)), list));
	ret_path[strcspn(ret_path, "\n")] = '\0';
	fclose(list);
}

static void test_damaged_cache_is_ignored(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_scan_cache *cache;
	char path[PATH_MAX];
	struct stat st;
	char byte;
	int fd;

	fill(fixture, 50);
	find_file(fixture, path, sizeof(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t at = 0; at < st.st_size; at++) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		assert_int_equal(bid_scan_cache_load(fixture->store, "/usr", &cache), 0);
		assert_true(bid_scan_cache_is_empty(cache));
		bid_scan_cache_free(cache);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_int_equal(bid_scan_cache_load(fixture->store, "/usr", &cache), 0);
	assert_false(bid_scan_cache_is_empty(cache));
	bid_scan_cache_free(cache);
	for (off_t len = st.st_size - 1; len > 0; len -= len / 50 + 1) {
		assert_int_equal(ftruncate(fd, len), 0);
		assert_int_equal(bid_scan_cache_load(fixture->store, "/usr", &cache), 0);
		assert_true(bid_scan_cache_is_empty(cache));
		bid_scan_cache_free(cache);
	}
	close(fd);
}

struct collected {
	size_t files, refused;
	int error; /* path of the last refused file */
	int answer;
};

static int collect(void *user, const struct bid_scan_file *file)
{
	struct collected *collected = user;

	collected->files++;
	if (file->error < 0) {
		collected->refused++;
		collected->error = file->error;
	}
	return collected->answer;
}

static int scan(const struct store_fixture *fixture, const char *name, struct collected *collected,
		struct bid_scan_counts *ret_counts)
{
	struct bid_scan_config config = { .jobs = 3, .link = BID_LINK_COPY, .file = collect, .user = collected };
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	return bid_store_scan(fixture->store, path, &config, ret_counts);
}

static void test_second_scan_uses_the_cache(void **state)
{
	struct store_fixture *fixture = *state;
	struct collected collected = { 0 };
	struct bid_scan_counts counts;

	run(fixture,
	    "rm -rf tree && mkdir -p tree/x && cp a b long none tree && cp a.debug short tree/x && echo > tree/text && sleep 0.05");
	assert_int_equal(scan(fixture, "tree", &collected, &counts), 0);
	assert_int_equal(counts.seen, 7);
	assert_int_equal(counts.added, 5);
	assert_int_equal(counts.refused, 1);
	assert_int_equal(counts.recalled, 0);
	assert_int_equal(collected.files, 6);
	assert_int_equal(collected.error, -ENODATA);
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), 0);
	run(fixture, "cmp tree/x/a.debug store/.build-id/aa/%s/debug", ID_A + 2);

	assert_int_equal(scan(fixture, "tree", &collected, &counts), 0);
	/* all but the one with a long id */
	assert_int_equal(counts.seen, 7);
	assert_int_equal(counts.recalled, 6);
	assert_int_equal(counts.known, 5);
	assert_int_equal(counts.added, 0);
	/* a file missing in the store is added again, despite its cache entry */
	run(fixture, "rm -rf store/.build-id/bb store\"$(pwd)\"/tree/b");
	assert_int_equal(scan(fixture, "tree", &collected, &counts), 0);
	assert_int_equal(counts.recalled, 5);
	assert_int_equal(counts.added, 1);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), 0);
}

static void test_file_that_fstat_fails_on_is_refused_alone(void **state)
{
	struct store_fixture *fixture = *state;
	struct collected collected = { 0 };
	struct bid_scan_counts counts;
	char path[96];
	struct stat st;
	int r;

	run(fixture, "rm -rf tree && mkdir tree && cp a b long tree");
	snprintf(path, sizeof(path), "%s/tree/b", fixture->directory);
	assert_int_equal(stat(path, &st), 0);
	stale = st.st_ino;
	r = scan(fixture, "tree", &collected, &counts);
	stale = 0;
	assert_int_equal(r, 0);
	assert_int_equal(counts.added, 2);
	assert_int_equal(counts.refused, 1);
	assert_int_equal(collected.error, -ESTALE);
}

static void test_stopped_scan_ends(void **state)
{
	struct store_fixture *fixture = *state;
	struct collected collected = { .answer = STOP };
	struct bid_scan_counts counts;

	run(fixture, "rm -rf tree && mkdir tree && for i in $(seq 300); do cp a tree/$i; done");
	assert_int_equal(scan(fixture, "tree", &collected, &counts), STOP);
	assert_int_equal(collected.files, 1);
	collected.answer = -ECANCELED;
	assert_int_equal(scan(fixture, "tree", &collected, &counts), -ECANCELED);
	run(fixture, "test ! -e store/.bidfs/scan && test -z \"$(ls store/.bidfs/tmp)\"");
}

enum { FLAT_FILES = 3000, FLAT_WAIT_S = 30 };

struct flat {
	pthread_mutex_t lock;
	pthread_cond_t both; /* there was a file for each of the threads */
	bool had[2], alone;
	unsigned char times[FLAT_FILES]; /* check that each file came */
	struct bid_dirwalk *walk;
};

struct flat_worker {
	struct flat *flat;
	unsigned number;
};

/* The first thread to have a file goes on only when the other has one, too. */
static int flat_file(void *user, const struct bid_dirwalk_file *file)
{
	const struct flat_worker *worker = user;
	struct flat *flat = worker->flat;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += FLAT_WAIT_S;
	pthread_mutex_lock(&flat->lock);
	flat->times[strtoul(file->name, NULL, 10) % FLAT_FILES]++;
	flat->had[worker->number] = true;
	pthread_cond_broadcast(&flat->both);
	while (!flat->alone && !(flat->had[0] && flat->had[1]))
		flat->alone = pthread_cond_timedwait(&flat->both, &flat->lock, &until) != 0;
	pthread_mutex_unlock(&flat->lock);
	return 0;
}

static int no_error(void *user, const char *path, int error)
{
	print_error("%s: %d\n", path, error);
	abort();
}

static void *walk_as_second(void *user)
{
	struct flat *flat = user;

	return bid_dirwalk_work(flat->walk, &(struct flat_worker){ flat, 1 }) == 0 ? flat : NULL;
}

static void test_large_directory_is_shared_by_threads(void **state)
{
	static const struct bid_dirwalk_ops ops = { .file = flat_file, .error = no_error };
	struct flat flat = { .lock = PTHREAD_MUTEX_INITIALIZER, .both = PTHREAD_COND_INITIALIZER };
	struct store_fixture *fixture = *state;
	pthread_t second;
	char path[96];
	void *done;
	int fd;

	run(fixture, "mkdir flat && cd flat && seq 0 %d | xargs touch", FLAT_FILES - 1);
	snprintf(path, sizeof(path), "%s/flat", fixture->directory);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(bid_dirwalk_new(fd, path, 0, &ops, &flat.walk), 0);
	assert_int_equal(pthread_create(&second, NULL, walk_as_second, &flat), 0);
	assert_int_equal(bid_dirwalk_work(flat.walk, &(struct flat_worker){ &flat, 0 }), 0);
	assert_int_equal(pthread_join(second, &done), 0);
	assert_non_null(done);
	assert_false(flat.alone);
	for (unsigned i = 0; i < FLAT_FILES; i++)
		assert_int_equal(flat.times[i], 1);
	bid_dirwalk_free(flat.walk);
	run(fixture, "rm -r flat");
}

static void test_exhausted_descriptors_are_an_error(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_scan_config config = { .jobs = 1 };
	struct bid_scan_counts counts;
	struct rlimit before, few;
	char path[PATH_MAX];

	/* each level has one waiting directory, whose parent is open */
	run(fixture, "mkdir deep && cd deep && for i in $(seq 100); do mkdir a b c d e f g h && cd d; done");
	snprintf(path, sizeof(path), "%s/deep", fixture->directory);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 48;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(bid_store_scan(fixture->store, path, &config, &counts), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(bid_store_scan(fixture->store, path, &config, &counts), 0);
	assert_int_equal(counts.refused, 0);
	run(fixture, "rm -r deep");
}

static void test_scan_of_no_tree_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	struct collected collected = { 0 };
	struct bid_scan_counts counts;

	assert_int_equal(scan(fixture, "a", &collected, &counts), -ENOTDIR);
	assert_int_equal(scan(fixture, "nothing", &collected, &counts), -ENOENT);
	assert_int_equal(scan(fixture, "store", &collected, &counts), -ELOOP);
	assert_int_equal(scan(fixture, "store/.bidfs", &collected, &counts), -ELOOP);
	assert_int_equal(collected.files, 0);
}

static int add_as(const struct store_fixture *fixture, const char *name, const char *path, bool delete)
{
	struct bid_added added;
	char from[PATH_MAX];
	int fd, r;

	run(fixture, "cp %s victim", name);
	snprintf(from, sizeof(from), "%s/victim", fixture->directory);
	fd = open(from, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	if (delete)
		assert_int_equal(unlink(from), 0);
	r = bid_store_add_file(fixture->store, &(struct bid_add){ .path = path, .fd = fd, .batch = true }, &added);
	close(fd);
	if (r == 0)
		assert_int_equal(bid_store_sync(fixture->store), 0);
	return r;
}

static void test_deleted_file_keeps_its_path(void **state)
{
	struct store_fixture *fixture = *state;

	assert_int_equal(add_as(fixture, "a", "/opt/container/bin/a", true), 0);
	assert_true(has_path(fixture, "opt/container/bin/a/" ID_A "/elf"));
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(add_as(fixture, "none", "/opt/none", true), -ENODATA);
}

static void test_path_to_another_file_is_refused(void **state)
{
	static const char *const paths[] = {
		"", "/", "a", "a/b", "/..", "/../a", "/a/../b", "/a/./b", "//a", "/a//b", "/a/", "/.bidfs/a", "/.build-id/aa/b",
	};
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(add_as(fixture, "a", paths[i], false), -EINVAL);
	run(fixture, "test \"$(ls -A store)\" = .bidfs");
}

static void test_memory_file_has_perfs_path(void **state)
{
	static const char symbols[] = "ffffffff81000000 T _stext\n";
	struct store_fixture *fixture = *state;
	struct bid_artifact kallsyms = request_for(ID_A, BID_KIND_KALLSYMS), vdso = request_for(ID_B, BID_KIND_VDSO);
	struct bid_artifact elf = request_for(ID_B, BID_KIND_ELF);
	struct bid_added added;
	char path[PATH_MAX];
	char *image;
	struct stat st;
	int fd;

	assert_int_equal(bid_store_add_data(fixture->store, &kallsyms, 0400, symbols, strlen(symbols), &added), 0);
	assert_false(added.known);
	assert_int_equal(find(fixture, ID_A, BID_KIND_KALLSYMS), 0);
	run(fixture, "test \"$(readlink store/.build-id/aa/%s)\" = '../../[kernel.kallsyms]/" ID_A "'", ID_A + 2);
	assert_int_equal(bid_store_add_data(fixture->store, &kallsyms, 0400, symbols, strlen(symbols), &added), 0);
	assert_true(added.known);

	snprintf(path, sizeof(path), "%s/b", fixture->directory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	image = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, image, (size_t)st.st_size), st.st_size);
	close(fd);
	assert_int_equal(bid_store_add_data(fixture->store, &vdso, 0444, image, (size_t)st.st_size, &added), 0);
	assert_int_equal(find(fixture, ID_B, BID_KIND_VDSO), 0);
	vdso.id = id_of(ID_A);
	assert_int_equal(bid_store_add_data(fixture->store, &vdso, 0444, image, (size_t)st.st_size, &added), -EBADMSG);
	assert_int_equal(bid_store_add_data(fixture->store, &vdso, 0444, symbols, strlen(symbols), &added), -ENOEXEC);
	assert_int_equal(bid_store_add_data(fixture->store, &elf, 0444, image, (size_t)st.st_size, &added), -EINVAL);
	free(image);
}

static void test_read_only_store_is_not_added_to(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_scan_config config = { 0 };
	struct bid_scan_counts counts;
	struct bid_store *store;
	struct bid_added added;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, 0, &store), 0);
	assert_int_equal(bid_store_scan(store, fixture->directory, &config, &counts), -EROFS);
	assert_int_equal(bid_store_add_file(store, &(struct bid_add){ .path = "/bin/sh", .fd = -1 }, &added), -EROFS);
	bid_store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_results_are_cached, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_damaged_cache_is_ignored, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_second_scan_uses_the_cache, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_file_that_fstat_fails_on_is_refused_alone, store_fixture_begin,
						store_fixture_end),
		cmocka_unit_test_setup_teardown(test_stopped_scan_ends, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_large_directory_is_shared_by_threads, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_exhausted_descriptors_are_an_error, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_scan_of_no_tree_is_refused, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_deleted_file_keeps_its_path, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_path_to_another_file_is_refused, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_memory_file_has_perfs_path, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_read_only_store_is_not_added_to, store_fixture_begin, store_fixture_end),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
