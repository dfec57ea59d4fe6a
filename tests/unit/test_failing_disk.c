// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A disk that fails: the n-th system call of an operation on a store returns an error, for every n, one error each.
 * The operation may fail then; the store may not be wrong after it, and nothing may be left behind.
 */
#include "store_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/content_key.h"
#include "api/evict.h"
#include "api/negative.h"
#include "api/remove.h"
#include "api/verify.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "scratch.h"

#define ID_E "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
#define ID_F "ffffffffffffffffffffffffffffffffffffffff"

/* Countdown to the failing call: the call that finds 1 fails. 0: none. */
static unsigned countdown;
static int fault;
static bool of_links; /* only calls that give a file or directory one name more count */

static bool counts_down(void)
{
	if (countdown == 0 || --countdown > 0)
		return false;
	errno = fault;
	return true;
}

static bool fails(void)
{
	return !of_links && counts_down();
}

/* In the place of the C library's. Removing does not fail: a caller could not react. */
ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
	if (!fails())
		return syscall(SYS_pwrite64, fd, data, len, offset);
	/* a disk that is full takes a part */
	if (fault == ENOSPC && len > 1)
		syscall(SYS_pwrite64, fd, data, len / 2, offset);
	return -1;
}

/* Journals. */
ssize_t write(int fd, const void *data, size_t len)
{
	if (!fails())
		return syscall(SYS_write, fd, data, len);
	if (fault == ENOSPC && len > 1)
		return syscall(SYS_write, fd, data, len / 2);
	return -1;
}

int ftruncate(int fd, off_t len)
{
	return fails() ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

/* Shared blocks, which this file system may lack anyway. */
int ioctl(int fd, unsigned long artifact, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, artifact);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return fails() ? -1 : (int)syscall(SYS_ioctl, fd, artifact, argument);
}

ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t len, unsigned flags)
{
	return fails() ? -1 : syscall(SYS_copy_file_range, in, in_offset, out, out_offset, len, flags);
}

int fsync(int fd)
{
	return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

/* syncfs(2) would write the whole disk of the test. */
int syncfs(int fd)
{
	return fails() ? -1 : fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
	return counts_down() ? -1 : (int)syscall(SYS_linkat, from, old, to, new, flags);
}

int symlinkat(const char *text, int dir, const char *name)
{
	return fails() ? -1 : (int)syscall(SYS_symlinkat, text, dir, name);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
	return counts_down() ? -1 : (int)syscall(SYS_mkdirat, dir, name, mode);
}

int renameat(int from, const char *old, int to, const char *new)
{
	return fails() ? -1 : (int)syscall(SYS_renameat, from, old, to, new);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	return fails() ? -1 : (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

int fchmod(int fd, mode_t mode)
{
	return fails() ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return fails() ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

static void read_file(const struct store_fixture *fixture, const char *name, char **ret_data, size_t *ret_len)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(bid_read_file(fd, 1 << 20, ret_data, ret_len), 0);
	close(fd);
}

/* The operations. Each begins with a store filled by prepare(), and returns 0 or a negative errno. */

static int fetch(const struct store_fixture *fixture)
{
	struct bid_artifact artifact = request_for(ID_B, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	struct bid_txn *txn = NULL;
	unsigned kept = countdown;
	char *data;
	size_t len;
	int r;

	countdown = 0;
	read_file(fixture, "b", &data, &len);
	countdown = kept;
	r = bid_txn_begin(fixture->store, &artifact, &txn);
	for (size_t at = 0; r == 0 && at < len; at += 8192)
		r = bid_txn_write(txn, data + at, len - at < 8192 ? len - at : 8192);
	if (r == 0)
		r = bid_txn_commit(txn, &(struct bid_origin){ .how = "fetched" }, &file);
	bid_file_release(&file);
	bid_txn_free(txn);
	free(data);
	return r;
}

static int add(const struct store_fixture *fixture)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/b", fixture->directory);
	return bid_store_add(fixture->store, path, BID_LINK_COPY, &added);
}

static int add_batch(const struct store_fixture *fixture)
{
	static const char *const names[] = { "b", "f" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		char path[96];
		struct bid_add file = { .path = path, .fd = -1, .link = BID_LINK_COPY, .batch = true };
		struct bid_added added;

		snprintf(path, sizeof(path), "%s/%s", fixture->directory, names[i]);
		r = bid_store_add_file(fixture->store, &file, &added);
	}
	return r < 0 ? r : bid_store_sync(fixture->store);
}

/* Hard-linked, or copied as a fallback. */
static int add_link(const struct store_fixture *fixture)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/b", fixture->directory);
	return bid_store_add(fixture->store, path, BID_LINK_AUTO, &added);
}

/* An unnamed file gets a path. */
static int add_fetched(const struct store_fixture *fixture)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/long", fixture->directory);
	return bid_store_add(fixture->store, path, BID_LINK_COPY, &added);
}

static int add_memory(const struct store_fixture *fixture)
{
	static const char symbols[] = "ffffffff81000000 T _text\n";
	struct bid_artifact artifact = request_for(ID_B, BID_KIND_KALLSYMS);
	struct bid_added added;

	return bid_store_add_data(fixture->store, &artifact, 0400, symbols, sizeof(symbols) - 1, &added);
}

static int keep_by_content(const struct store_fixture *fixture)
{
	struct bid_content_key key;
	char path[96];

	snprintf(path, sizeof(path), "%s/none", fixture->directory);
	return bid_store_keep_content_key(fixture->store, path, &key);
}

static int add_negative(const struct store_fixture *fixture)
{
	struct bid_artifact artifact = request_for(ID_B, BID_KIND_DEBUGINFO);
	struct bid_negative *negative;
	int r = bid_negative_new(fixture->store, &negative);

	if (r < 0)
		return r;
	/* in memory after a failed call */
	bid_negative_add(negative, &artifact, "http://a", BID_OUTCOME_ABSENT);
	bid_negative_free(negative);
	return 0;
}

static int note_error(void *user, const struct bid_scan_file *file)
{
	int *error = user;

	if (*error == 0)
		*error = file->error;
	return 0;
}

static int scan(const struct store_fixture *fixture)
{
	int error = 0;
	struct bid_scan_config config = { .jobs = 1, .file = note_error, .user = &error };
	struct bid_scan_counts counts;
	char path[96];
	int r;

	snprintf(path, sizeof(path), "%s/tree", fixture->directory);
	r = bid_store_scan(fixture->store, path, &config, &counts);
	return r < 0 ? r : error;
}

static int update(const struct store_fixture *fixture)
{
	struct bid_added added;
	char path[96];
	bool replaced;

	snprintf(path, sizeof(path), "%s/a", fixture->directory);
	return bid_store_update(fixture->store, path, BID_LINK_AUTO, &added, &replaced);
}

static int remove_name(const struct store_fixture *fixture)
{
	struct bid_removal removal = { .id = id_of(ID_A), .path = "/usr/bin/a" };
	int r = bid_store_remove(fixture->store, &removal, 1);

	return r < 0 ? r : removal.error;
}

static int evict(const struct store_fixture *fixture)
{
	struct bid_evict_config config = { .limits = { .cache_size = 1 } };
	struct bid_evict_stats stats;

	return bid_store_evict(fixture->store, &config, &stats);
}

static int repair(const struct store_fixture *fixture)
{
	struct bid_verify_config config = { .deep = true, .repair = true };
	struct bid_verify_stats stats;

	return bid_store_verify(fixture->store, &config, &stats);
}

static const struct operation {
	const char *name;
	int (*run)(const struct store_fixture *fixture);
	const char *served; /* id that the store has after a success */
} operations[] = {
	{ "fetch", fetch, ID_B },
	{ "add", add, ID_B },
	{ "add linked", add_link, ID_B },
	{ "add a batch", add_batch, ID_F },
	{ "add what was fetched", add_fetched, ID_LONG },
	{ "add from memory", add_memory, ID_A },
	{ "scan", scan, ID_B },
	{ "update", update, ID_A },
	{ "keep a content key", keep_by_content, ID_A },
	{ "add a negative entry", add_negative, ID_A },
	{ "remove", remove_name, ID_A },
	{ "evict", evict, ID_A },
	{ "repair", repair, ID_A },
};

/* A build under two names, one an orphan of perf's; a fetched one; and two that a scan has added. */
static void prepare(struct store_fixture *fixture, unsigned flags)
{
	char path[96], prepared[96];

	bid_store_free(fixture->store);
	fixture->store = NULL;
	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	snprintf(prepared, sizeof(prepared), "%s/prepared", fixture->directory);
	assert_int_equal(scratch_remove(path), 0);
	assert_int_equal(scratch_copy(prepared, path), 0);
	assert_int_equal(bid_store_open(path, BID_STORE_WRITE | flags, &fixture->store), 0);
}

static void prepare_once(struct store_fixture *fixture)
{
	struct bid_artifact artifact = request_for(ID_LONG, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	struct bid_txn *txn;
	char *data;
	size_t len;

	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "a.debug", "usr/bin/a", ID_A, "debug");
	perf_adds(fixture, "a.stripped", "opt/a", ID_A, "elf");
	read_file(fixture, "long", &data, &len);
	assert_int_equal(bid_txn_begin(fixture->store, &artifact, &txn), 0);
	assert_int_equal(bid_txn_write(txn, data, len), 0);
	assert_int_equal(bid_txn_commit(txn, &(struct bid_origin){ .how = "fetched" }, &file), 0);
	bid_file_release(&file);
	bid_txn_free(txn);
	free(data);
	run(fixture,
	    "gcc -Wl,--build-id=0x" ID_E " -o e a.c && gcc -Wl,--build-id=0x" ID_F " -o f a.c && rm -rf tree && mkdir tree && "
	    "cp e short tree");
	assert_int_equal(scan(fixture), 0);
	run(fixture, "rm -rf prepared && cp -a store prepared && cp b f long tree");
}

static bool has_temporaries(const struct store_fixture *fixture)
{
	char path[96];
	bid_auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	snprintf(path, sizeof(path), "%s/store/.bidfs/tmp", fixture->directory);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return true;
	return false;
}

/* After any fault nothing is wrong or lost, and verify repairs the leftovers. */
static void check_after(struct store_fixture *fixture, const struct operation *operation, int r, unsigned n)
{
	struct bid_verify_config config = { .deep = true, .jobs = 1 };
	struct bid_verify_stats stats;
	char path[96];

	bid_store_free(fixture->store);
	fixture->store = NULL;
	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, BID_STORE_WRITE, &fixture->store), 0);
	if (has_temporaries(fixture))
		fail_msg("%s, call %u, %s: a temporary file is left", operation->name, n, bid_strerror(-fault));
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	if (stats.found[BID_FINDING_WRONG] || stats.found[BID_FINDING_CORRUPT] || stats.found[BID_FINDING_UNREADABLE])
		fail_msg("%s, call %u, %s: a wrong file under a final name", operation->name, n, bid_strerror(-fault));
	/* the store keeps its earlier files, after a success or a failure */
	if (find(fixture, ID_A, BID_KIND_ELF) != 0 || find(fixture, ID_A, BID_KIND_DEBUGINFO) != 0 ||
	    /* downloaded files may be evicted for want of space */
	    (operation->run == add_fetched && fault != ENOSPC && find(fixture, ID_LONG, BID_KIND_ELF) != 0))
		fail_msg("%s, call %u, %s: something is lost that was there before", operation->name, n, bid_strerror(-fault));
	if (r == 0 && find(fixture, operation->served, BID_KIND_ELF) != 0)
		fail_msg("%s, call %u, %s: done, and not there", operation->name, n, bid_strerror(-fault));
	config.repair = true;
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.left, 0);
	config.repair = false;
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		if (stats.found[kind])
			fail_msg("%s, call %u, %s: repaired, and still %s", operation->name, n, bid_strerror(-fault),
				 bid_finding_name((enum bid_finding_kind)kind));
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
}

static void test_failing_call_harms_no_store(void **state)
{
	static const int faults[] = { ENOSPC, EIO, EINTR, EMFILE, ENOMEM, EDQUOT, EMLINK };
	struct store_fixture *fixture = *state;
	unsigned tried = 0, failed = 0;

	bid_log_init("test", BID_LOG_ERROR);
	prepare_once(fixture);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		for (size_t j = 0; j < sizeof(faults) / sizeof(faults[0]); j++) {
			unsigned left = 0;

			/* until there is no n-th call: each call fails with one of the errors, in turn */
			for (unsigned n = 1 + (unsigned)(i + j) % STRIDE; left == 0; n += STRIDE) {
				int r;

				prepare(fixture, j % 2 ? BID_STORE_NAMED_TEMP : 0);
				fault = faults[j];
				of_links = fault == EMLINK;
				countdown = n;
				r = operations[i].run(fixture);
				left = countdown;
				countdown = 0;
				/* the caller gets the injected error */
				if (r != 0 && r != -fault)
					fail_msg("%s, call %u, %s: it returns %d", operations[i].name, n, bid_strerror(-fault), r);
				tried++;
				failed += r < 0;
				check_after(fixture, &operations[i], r, n);
				assert_true(n < 500);
			}
		}
	}
	print_message("%u calls failed, %u operations with them\n", tried, failed);
	/* the faults reach their targets */
	assert_true(tried > 200 && failed > tried / 4);
	bid_log_init("test", BID_LOG_WARNING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_failing_call_harms_no_store, store_fixture_begin, store_fixture_end),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
