// SPDX-License-Identifier: LGPL-2.1-or-later
/* Eviction: candidates, files that always stay, and a full disk. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "disk/record.h"

static unsigned until_killed; /* calls that change names in a directory, until one ends the process; 0: none */

static void count_call(void)
{
	if (until_killed > 0 && --until_killed == 0)
		_exit(9);
}

/* In the place of the C library's. */
int linkat(int from, const char *name, int to, const char *as, int flags)
{
	count_call();
	return (int)syscall(SYS_linkat, from, name, to, as, flags);
}

int symlinkat(const char *text, int dir, const char *name)
{
	count_call();
	return (int)syscall(SYS_symlinkat, text, dir, name);
}

int unlinkat(int dir, const char *name, int flags)
{
	count_call();
	return (int)syscall(SYS_unlinkat, dir, name, flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
	count_call();
	return (int)syscall(SYS_mkdirat, dir, name, mode);
}

#define REST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static int try_fetch(const struct store_fixture *fixture, const char *hex, enum bid_kind kind, const char *name, size_t padding)
{
	struct bid_artifact artifact = request_for(hex, kind);
	struct bid_file file = BID_FILE_NONE;
	char path[96], *data, zeros[4096] = { 1 };
	struct bid_txn *txn = NULL;
	size_t len;
	int fd, r;

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(bid_read_file(fd, 1 << 20, &data, &len), 0);
	close(fd);
	r = bid_txn_begin(fixture->store, &artifact, &txn);
	if (r == 0)
		r = bid_txn_write(txn, data, len);
	for (size_t at = 0; r == 0 && at < padding; at += sizeof(zeros))
		r = bid_txn_write(txn, zeros, sizeof(zeros));
	if (r == 0)
		r = bid_txn_commit(txn, &(struct bid_origin){ .how = "fetched" }, &file);
	bid_file_release(&file);
	bid_txn_free(txn);
	free(data);
	return r;
}

static void fetch(const struct store_fixture *fixture, const char *hex, enum bid_kind kind, const char *name)
{
	assert_int_equal(try_fetch(fixture, hex, kind, name, 0), 0);
}

static void add(const struct store_fixture *fixture, const char *name)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	assert_int_equal(bid_store_add(fixture->store, path, BID_LINK_COPY, &added), 0);
}

/* Evict all candidates. Returns their number. */
static unsigned evict_all(const struct store_fixture *fixture, bool dry_run)
{
	struct bid_evict_config config = { .limits = { .cache_size = 1 }, .dry_run = dry_run };
	struct bid_evict_stats stats;

	assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.evicted, stats.artifacts);
	assert_int_equal(stats.evicted_size, stats.size);
	return (unsigned)stats.evicted;
}

static void assert_dry_run_counts(const struct store_fixture *fixture, unsigned n)
{
	struct bid_evict_config config = { .limits = { .cache_size = 1 }, .dry_run = true };
	struct bid_evict_stats stats;
	struct bid_store *reader;

	assert_int_equal(bid_store_open(bid_store_path(fixture->store), 0, &reader), 0);
	assert_int_equal(bid_store_evict(reader, &config, &stats), 0);
	assert_int_equal(stats.evicted, n);
	config.dry_run = false;
	assert_int_equal(bid_store_evict(reader, &config, &stats), -EROFS);
	bid_store_free(reader);
}

static void test_evicted_download_leaves_digest_and_log_line(void **state)
{
	struct store_fixture *fixture = *state;

	fetch(fixture, ID_A, BID_KIND_ELF, "a.stripped");
	fetch(fixture, ID_A, BID_KIND_DEBUGINFO, "a.debug");
	fetch(fixture, ID_LONG, BID_KIND_ELF, "long");
	run(fixture, "touch 'store/[debuginfod]/" ID_A "/probes'"); /* as perf does whenever it looks */
	assert_int_equal(evict_all(fixture, true), 3);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_dry_run_counts(fixture, 3);
	assert_int_equal(evict_all(fixture, false), 3);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	run(fixture, "! test -e 'store/[debuginfod]' && test -z \"$(find store ! -path 'store/.bidfs/first/*' ! -name evicted "
		     "! -name lock '(' -type f -o -type l ')')\"");
	nothing_is_wrong(fixture);
}

static void test_added_file_is_not_evicted(void **state)
{
	struct store_fixture *fixture = *state;

	add(fixture, "a");
	perf_adds(fixture, "b", "usr/bin/b", ID_B, "elf");
	/* downloaded, and then linked by a user */
	fetch(fixture, ID_LONG, BID_KIND_ELF, "long");
	add(fixture, "long");
	assert_int_equal(evict_all(fixture, false), 0);
	/* fetched, and then added as a file that the store has already */
	fetch(fixture, ID_B, BID_KIND_DEBUGINFO, "b");
	fetch(fixture, ID_A, BID_KIND_DEBUGINFO, "a.debug");
	add(fixture, "a.debug");
	assert_int_equal(evict_all(fixture, false), 1);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), 0);
	assert_true(has_path(fixture, ".build-id/aa/" REST_A "/debug"));
	nothing_is_wrong(fixture);
}

static void test_downloaded_debuginfo_beside_added_file_is_evicted(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	fetch(fixture, ID_A, BID_KIND_DEBUGINFO, "a.debug");
	assert_true(has_path(fixture, "usr/bin/a/" ID_A "/debug"));
	assert_int_equal(evict_all(fixture, false), 1);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), -ENOENT);
	nothing_is_wrong(fixture);
}

static void test_file_without_record_is_not_evicted(void **state)
{
	struct store_fixture *fixture = *state;

	fetch(fixture, ID_A, BID_KIND_ELF, "a");
	fetch(fixture, ID_B, BID_KIND_ELF, "b");
	fetch(fixture, ID_LONG, BID_KIND_ELF, "long");
	/* no record, a damaged one, and one of a file that is another by now */
	run(fixture, "rm -r store/.bidfs/record/aa && echo '{}' >$(echo store/.bidfs/record/bb/*) && "
		     "echo more >>$(echo store/.build-id/cc/*/elf)");
	assert_int_equal(evict_all(fixture, false), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
}

static void test_copy_by_perf_gets_the_link_of_an_evicted_download(void **state)
{
	struct store_fixture *fixture = *state;

	fetch(fixture, ID_A, BID_KIND_ELF, "a");
	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	run(fixture, "readlink store/.build-id/aa/" REST_A " | grep -q debuginfod");
	assert_int_equal(evict_all(fixture, false), 1);
	run(fixture, "test \"$(readlink store/.build-id/aa/" REST_A ")\" = ../../usr/bin/a/" ID_A);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	nothing_is_wrong(fixture);
}

static void test_addition_replaces_the_download_and_no_copy_of_perf(void **state)
{
	struct store_fixture *fixture = *state;

	fetch(fixture, ID_A, BID_KIND_ELF, "a.stripped");
	/* as perf buildid-cache --update does */
	run(fixture, "rm store/.build-id/aa/" REST_A);
	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	run(fixture, "cp a other && echo >>other");
	add(fixture, "other");
	assert_false(has_path(fixture, "[debuginfod]/" ID_A "/elf"));
	assert_false(has_path(fixture, ".bidfs/quarantine"));
	run(fixture, "cmp a store/.build-id/aa/" REST_A "/elf && cmp a store/usr/bin/a/" ID_A "/elf");
	assert_int_equal(evict_all(fixture, false), 0);
	nothing_is_wrong(fixture);
}

static void test_least_recently_used_is_evicted_first(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_evict_config config = { 0 };
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	struct bid_evict_stats stats;

	fetch(fixture, ID_A, BID_KIND_ELF, "a");
	fetch(fixture, ID_B, BID_KIND_ELF, "b");
	fetch(fixture, ID_LONG, BID_KIND_ELF, "long");
	run(fixture, "touch -d '3 days ago' store/.bidfs/record/aa/* && touch -d '2 days ago' store/.bidfs/record/bb/* && "
		     "touch -d '1 day ago' store/.bidfs/record/cc/*");
	/* the oldest is served: now it is the youngest */
	bid_store_used(fixture->store, &artifact);
	assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.artifacts, 3);
	assert_int_equal(stats.evicted, 0);
	config.limits.cache_size = stats.size - 1;
	assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.evicted, 1);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), -ENOENT);
	config.limits.cache_size = stats.size - stats.evicted_size - 1;
	assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.evicted, 1);
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), -ENOENT);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
}

static void test_use_is_recorded_once_an_hour(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	struct stat st;
	char path[160];
	time_t begun;

	fetch(fixture, ID_A, BID_KIND_ELF, "a");
	snprintf(path, sizeof(path), "%s/store/.bidfs/record/aa/" REST_A ".elf", fixture->directory);
	run(fixture, "touch -d '2 hours ago' store/.bidfs/record/aa/*");
	begun = time(NULL);
	bid_store_used(fixture->store, &artifact);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_mtim.tv_sec >= begun - 1);
	run(fixture, "touch -d '2 hours ago' store/.bidfs/record/aa/*");
	bid_store_used(fixture->store, &artifact);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_mtim.tv_sec < time(NULL) - 3600);
}

static void test_open_file_is_not_evicted(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_evict_config config = { .limits = { .cache_size = 1 }, .dry_run = true };
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	struct bid_evict_stats stats;
	struct stat record;
	void *mapped;

	fetch(fixture, ID_A, BID_KIND_ELF, "a");
	fetch(fixture, ID_B, BID_KIND_ELF, "b");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	run(fixture, "touch -d '1 day ago' store/.bidfs/record/aa/*");
	/* the longest unused; of the two candidates the other one is evicted */
	assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.evicted, 1);
	assert_int_equal(stats.in_use, 1);
	assert_int_equal(stats.in_use_size + stats.evicted_size, stats.size);
	config.limits.cache_size = stats.size - 1;
	config.dry_run = false;
	assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.evicted, 1);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), -ENOENT);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	/* an open file is in use */
	assert_int_equal(bid_record_stat(fixture->store, &artifact, &record), 0);
	assert_true(record.st_mtim.tv_sec >= time(NULL) - 60);
	/* a mapping is as good */
	mapped = mmap(NULL, (size_t)file.st.st_size, PROT_READ, MAP_PRIVATE, file.fd, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	bid_file_release(&file);
	config.limits.cache_size = 1;
	assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.evicted, 0);
	assert_int_equal(munmap(mapped, (size_t)file.st.st_size), 0);
	assert_int_equal(evict_all(fixture, false), 1);
}

/* A cached descriptor stays open while a reader may have it. */
struct kept {
	struct bid_file file;
	bool may_be_read;
};

static int drop_fd(void *user, const struct stat *st)
{
	struct kept *kept = user;

	if (kept->file.fd < 0 || !st || st->st_ino != kept->file.st.st_ino)
		return -1;
	if (kept->may_be_read)
		return fcntl(kept->file.fd, F_DUPFD_CLOEXEC, 3);
	bid_file_release(&kept->file);
	return -1;
}

static void test_cached_descriptor_does_not_stop_eviction(void **state)
{
	struct store_fixture *fixture = *state;
	struct kept kept = { .file = BID_FILE_NONE };
	struct bid_evict_config config = { .limits = { .cache_size = 1 } };
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	struct bid_evict_stats stats;

	bid_store_on_drop_fd(fixture->store, drop_fd, &kept);
	for (int i = 0; i < 2; i++) {
		kept.may_be_read = i == 1;
		fetch(fixture, ID_A, BID_KIND_ELF, "a");
		assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &kept.file), 0);
		/* a reader has the file open, beside the cache */
		assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
		assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
		assert_int_equal(stats.in_use, 1);
		bid_file_release(&file);
		if (kept.file.fd < 0)
			assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &kept.file), 0);
		assert_int_equal(evict_all(fixture, false), 1);
		assert_int_equal(kept.file.fd >= 0, kept.may_be_read);
		bid_file_release(&kept.file);
	}
	bid_store_on_drop_fd(fixture->store, NULL, NULL);
}

static void test_record_of_lost_download_does_not_evict_added_file(void **state)
{
	struct store_fixture *fixture = *state;

	fetch(fixture, ID_A, BID_KIND_ELF, "a.stripped");
	run(fixture, "rm -r 'store/[debuginfod]' store/.build-id && ls store/.bidfs/record/aa/*.elf");
	add(fixture, "a.stripped");
	run(fixture, "rmdir store/.bidfs/record/aa");
	assert_int_equal(evict_all(fixture, false), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
}

/* Fetch and evict in a process that is killed at the call number @n. Returns whether eviction happened. */
static bool is_killed(const struct store_fixture *fixture, unsigned n, bool evicting)
{
	pid_t child;
	int status;

	if (evicting)
		fetch(fixture, ID_A, BID_KIND_ELF, "a.stripped");
	child = fork();
	if (child == 0) {
		until_killed = n;
		if (evicting)
			evict_all(fixture, false);
		else
			fetch(fixture, ID_A, BID_KIND_ELF, "a.stripped");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
	return WEXITSTATUS(status) == 9;
}

/* Each downloaded file has its record, by which it counts; the next eviction removes the rest. */
static void test_leftovers_of_a_kill_are_counted_or_removed(void **state)
{
	struct store_fixture *fixture = *state;
	unsigned n[2] = { 0 };

	fetch(fixture, ID_B, BID_KIND_ELF, "b");
	for (int evicting = 0; evicting < 2; evicting++) {
		while (is_killed(fixture, ++n[evicting], evicting)) {
			evict_all(fixture, false);
			run(fixture,
			    "find store ! -path 'store/.bidfs/first/*' ! -name evicted ! -name lock '(' -type f -o -type l -o "
			    "-name 'aaaa*' ')' | "
			    "if read path; then "
			    "echo \"after call %u: $path\"; exit 1; fi",
			    n[evicting]);
			nothing_is_wrong(fixture);
		}
		evict_all(fixture, false);
	}
	assert_true(n[0] > 4 && n[1] > 3);
}

/* Events between the choice of an artifact and its removal. */
struct between {
	const struct store_fixture *fixture;
	struct bid_file file; /* the cached descriptor that the eviction drops */
	int marked;
};

static int add_between(void *user, const struct stat *st)
{
	struct between *between = user;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_DEBUGINFO);

	if (between->file.fd < 0)
		return -1;
	between->marked = bid_store_mark_added(between->fixture->store, &artifact);
	return bid_steal_fd(&between->file.fd);
}

static void test_file_added_during_eviction_stays(void **state)
{
	struct store_fixture *fixture = *state;
	struct between between = { .fixture = fixture, .file = BID_FILE_NONE, .marked = -1 };
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_DEBUGINFO);
	struct bid_evict_config config = { .limits = { .cache_size = 1 } };
	struct bid_evict_stats stats;

	fetch(fixture, ID_A, BID_KIND_DEBUGINFO, "a.debug");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &between.file), 0);
	bid_store_on_drop_fd(fixture->store, add_between, &between);
	assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
	bid_store_on_drop_fd(fixture->store, NULL, NULL);
	assert_int_equal(between.marked, 0);
	assert_int_equal(stats.evicted, 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	run(fixture, "grep -q added store/.bidfs/record/aa/*");
	assert_int_equal(evict_all(fixture, false), 0);
	/* and an evicted file cannot be added */
	fetch(fixture, ID_B, BID_KIND_ELF, "b");
	artifact = request_for(ID_B, BID_KIND_ELF);
	assert_int_equal(evict_all(fixture, false), 1);
	assert_int_equal(bid_store_mark_added(fixture->store, &artifact), -ENOENT);
}

/* A section and an unpacked module can be derived again; their origins stay. */
static void test_derived_file_is_evicted_and_derived_again(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_SECTION);
	struct bid_subpath *text;

	assert_int_equal(bid_subpath_section(".text", &text), 0);
	artifact.subpath = text;
	run(fixture, "xz -kc a > packed");
	perf_adds(fixture, "packed", "lib/modules/6/a.ko.xz", ID_A, "elf");
	add(fixture, "b");
	for (int i = 0; i < 2; i++) {
		struct bid_file file = BID_FILE_NONE;

		assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
		assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
		bid_file_release(&file);
		assert_int_equal(evict_all(fixture, true), 2);
		assert_int_equal(evict_all(fixture, false), 2);
		run(fixture, "test -z \"$(find store/.bidfs/unpacked store/.bidfs/section -type f)\"");
		nothing_is_wrong(fixture);
	}
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), 0);
	bid_subpath_unref(text);
}

static void test_gc_thread_keeps_the_limits(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_limits limits = { .cache_size = 100 * 1024 };

	assert_int_equal(bid_store_keep_limits(fixture->store, &limits), 0);
	assert_int_equal(try_fetch(fixture, ID_A, BID_KIND_ELF, "a", 64 * 1024), 0);
	run(fixture, "touch -d '1 day ago' store/.bidfs/record/aa/*");
	assert_int_equal(try_fetch(fixture, ID_B, BID_KIND_ELF, "b", 64 * 1024), 0);
	/* another thread evicts: wait for it; a file open at that moment would stay */
	for (int i = 0; has_path(fixture, ".build-id/aa/" REST_A "/elf"); i++) {
		assert_true(i < 3000);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), 0);
}

static void test_read_only_store_does_not_evict(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_evict_config config = { .limits = { .cache_size = 1 } };
	struct bid_evict_stats stats;
	struct bid_store *reader;
	char path[96];

	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, 0, &reader), 0);
	assert_int_equal(bid_store_evict(reader, &config, &stats), -EROFS);
	assert_int_equal(bid_store_keep_limits(reader, &config.limits), -EROFS);
	bid_store_used(reader, &(struct bid_artifact){ .kind = BID_KIND_ELF });
	bid_store_free(reader);
}

/* A store on a file system of one MiB. */
static void small_disk_begin(struct store_fixture *fixture)
{
	char path[96];
	int r;

	bid_store_free(fixture->store);
	fixture->store = NULL;
	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	r = unshare(CLONE_NEWNS);
	if (r == 0)
		r = mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (r == 0)
		r = mount("tmpfs", path, "tmpfs", 0, "size=1m");
	if (r < 0)
		print_message("skipped: no small file system can be mounted: %s\n", strerror(errno));
	assert_int_equal(bid_store_open(path, BID_STORE_WRITE, &fixture->store), 0);
	if (r < 0)
		skip();
	bid_log_init("test", BID_LOG_ERROR);
}

static void small_disk_end(struct store_fixture *fixture)
{
	char path[96];

	bid_log_init("test", BID_LOG_WARNING);
	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	bid_store_free(fixture->store);
	fixture->store = NULL;
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

/* An ELF file and a sparse debug file, to be put together. */
static void test_sparse_pair_evicts_no_more_than_it_needs(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_file file = BID_FILE_NONE;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_UNSTRIPPED);

	small_disk_begin(fixture);
	/* an eviction makes room for 64 MiB at least */
	run(fixture, "mount -o remount,size=200m store");
	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "a.debug", "usr/bin/a", ID_A, "debug");
	run(fixture, "truncate -s 1G store/usr/bin/a/" ID_A "/debug");
	assert_int_equal(try_fetch(fixture, ID_B, BID_KIND_ELF, "b", 66 << 20), 0);
	assert_int_equal(try_fetch(fixture, ID_LONG, BID_KIND_ELF, "long", 66 << 20), 0);
	run(fixture, "! dd if=/dev/zero of=store/filler bs=4k 2>/dev/null");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	assert_true(file.st.st_nlink > 0);
	bid_file_release(&file);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), -ENOENT);
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), 0);
	small_disk_end(fixture);
}

/* The third file of 400 KiB has no room, unless one of the others goes. */
static void test_full_disk_evicts_once(void **state)
{
	struct store_fixture *fixture = *state;

	small_disk_begin(fixture);
	assert_int_equal(try_fetch(fixture, ID_A, BID_KIND_ELF, "a", 400 * 1024), 0);
	run(fixture, "touch -d '1 day ago' store/.bidfs/record/aa/*");
	assert_int_equal(try_fetch(fixture, ID_B, BID_KIND_ELF, "b", 400 * 1024), 0);
	assert_int_equal(try_fetch(fixture, ID_LONG, BID_KIND_ELF, "long", 400 * 1024), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), 0);
	nothing_is_wrong(fixture);
	/* a file larger than the limit is refused, and leaves nothing behind */
	assert_int_equal(try_fetch(fixture, ID_SHORT, BID_KIND_ELF, "short", 2 << 20), -ENOSPC);
	assert_int_equal(find(fixture, ID_SHORT, BID_KIND_ELF), -ENOENT);
	run(fixture, "test -z \"$(ls store/.bidfs/tmp)\"");
	nothing_is_wrong(fixture);
	small_disk_end(fixture);
}

/* Announce the size, with an eviction if it needs one. */
static int expect_room(struct bid_txn *txn, uint64_t size)
{
	int r = bid_txn_expect(txn, size);

	return r == -EAGAIN ? bid_txn_make_room(txn) : r;
}

/* Eviction makes room before a file of known size arrives. A size that can never fit evicts nothing. */
static void test_announced_size_makes_room_before_writing(void **state)
{
	struct bid_artifact artifact = request_for(ID_B, BID_KIND_ELF);
	struct store_fixture *fixture = *state;
	struct bid_txn *txn;

	small_disk_begin(fixture);
	assert_int_equal(try_fetch(fixture, ID_A, BID_KIND_ELF, "a", 400 * 1024), 0);
	assert_int_equal(bid_txn_begin(fixture->store, &artifact, &txn), 0);
	assert_int_equal(expect_room(txn, 500 * 1024), 0);
	assert_int_equal(expect_room(txn, 2 << 20), -ENOSPC);
	assert_non_null(strstr(bid_txn_reason(txn), "No space left on device for 2097152 bytes"));
	assert_int_equal(expect_room(txn, UINT64_MAX / 16), -ENOSPC);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(expect_room(txn, 800 * 1024), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	nothing_is_wrong(fixture);
	bid_txn_free(txn);
	small_disk_end(fixture);
}

static void test_min_free_is_not_available(void **state)
{
	struct bid_limits limits = { .min_free = 512 * 1024 };
	struct bid_artifact artifact = request_for(ID_B, BID_KIND_ELF);
	struct store_fixture *fixture = *state;
	struct bid_txn *txn;

	small_disk_begin(fixture);
	assert_int_equal(bid_store_keep_limits(fixture->store, &limits), 0);
	assert_int_equal(bid_txn_begin(fixture->store, &artifact, &txn), 0);
	assert_int_equal(expect_room(txn, 600 * 1024), -ENOSPC);
	assert_int_equal(expect_room(txn, 400 * 1024), 0);
	bid_txn_free(txn);
	small_disk_end(fixture);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_evicted_download_leaves_digest_and_log_line),
		TEST(test_record_of_lost_download_does_not_evict_added_file),
		TEST(test_file_added_during_eviction_stays),
		TEST(test_added_file_is_not_evicted),
		TEST(test_downloaded_debuginfo_beside_added_file_is_evicted),
		TEST(test_file_without_record_is_not_evicted),
		TEST(test_copy_by_perf_gets_the_link_of_an_evicted_download),
		TEST(test_addition_replaces_the_download_and_no_copy_of_perf),
		TEST(test_least_recently_used_is_evicted_first),
		TEST(test_use_is_recorded_once_an_hour),
		TEST(test_open_file_is_not_evicted),
		TEST(test_cached_descriptor_does_not_stop_eviction),
		TEST(test_leftovers_of_a_kill_are_counted_or_removed),
		TEST(test_derived_file_is_evicted_and_derived_again),
		TEST(test_gc_thread_keeps_the_limits),
		TEST(test_read_only_store_does_not_evict),
		TEST(test_full_disk_evicts_once),
		TEST(test_sparse_pair_evicts_no_more_than_it_needs),
		TEST(test_announced_size_makes_room_before_writing),
		TEST(test_min_free_is_not_available),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
