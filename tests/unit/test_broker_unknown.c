// SPDX-License-Identifier: LGPL-2.1-or-later
/* Results of servers that lack the artifact, that are unreachable, and of a store that fails: absent is not unknown. */
#include "held_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "broker/download.h"

static void test_absence_everywhere_is_cached(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), debuginfo = request_of(0xa, BID_KIND_DEBUGINFO);
	struct bid_server *server[2];
	unsigned ttl = 0;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	server[0] = fixture_memory(fixture, "first");
	server[1] = fixture_memory(fixture, "second");
	assert_int_equal(fetch(fixture, &artifact, &call), -ENOENT);
	assert_int_equal(call->n_reports, 2);
	assert_int_equal(call->outcomes[1], BID_OUTCOME_ABSENT);

	assert_int_equal(find(fixture, &artifact, &ttl), -ENOENT);
	assert_in_range(ttl, 80, 90);
	call = call_for(fixture, &artifact);
	assert_true(call_over(call));
	assert_int_equal(call->error, -ENOENT);
	assert_int_equal(memory_server_requests(server[0]), 1);
	assert_int_equal(memory_server_requests(server[1]), 1);
	assert_int_equal(stats_of(fixture).negative_entries, 2);
	assert_int_equal(stats_of(fixture).absent, 3);
	assert_int_equal(find(fixture, &debuginfo, NULL), -EINPROGRESS);
}

static time_t now; /* 0 for the machine's time */

/* In the place of the C library's. */
time_t time(time_t *ret_time)
{
	struct timespec machine;
	time_t seconds = now;

	if (seconds == 0)
		seconds = clock_gettime(CLOCK_REALTIME, &machine) == 0 ? machine.tv_sec : -1;
	if (ret_time)
		*ret_time = seconds;
	return seconds;
}

static void test_cached_absence_expires(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *server;
	unsigned ttl = 1;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	now = 5000;
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	now += 90;
	assert_int_equal(find(fixture, &artifact, &ttl), -EINPROGRESS);
	assert_int_equal(ttl, 1);
	sleep_ms(300); /* the result expires */
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	assert_int_equal(memory_server_requests(server), 2);
	assert_int_equal(find(fixture, &artifact, &ttl), -ENOENT);
	assert_int_equal(ttl, 10 * 60);

	put_elf(server, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	now += 10 * 60;
	sleep_ms(300);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
	assert_int_equal(stats_of(fixture).negative_entries, 0);

	/* the file appeared: earlier absences no longer count */
	bid_negative_add(fixture->broker->negative, &artifact, "memory", BID_OUTCOME_ABSENT);
	assert_int_equal(bid_negative_lookup(fixture->broker->negative, &artifact, "memory", &ttl), BID_OUTCOME_ABSENT);
	assert_int_equal(ttl, 90);
	now = 0;
}

/* A negative cache entry of one server outlives the program, and saves a request while another server is unreachable. */
static void test_absence_is_cached_per_server(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *has_not, *down;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	has_not = fixture_memory(fixture, "has not");
	down = fixture_memory(fixture, "down");
	memory_server_set_default(down, BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(fetch(fixture, &artifact, NULL), -EHOSTUNREACH);
	sleep_ms(300); /* the result expires */
	assert_int_equal(fetch(fixture, &artifact, &call), -EHOSTUNREACH);
	assert_int_equal(call->n_reports, 2);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_ABSENT);
	assert_non_null(strstr(call->texts[0], "same response earlier"));
	assert_int_equal(memory_server_requests(has_not), 1);
	assert_int_equal(memory_server_requests(down), 2);
	fixture_end_broker(fixture);

	fixture_broker(fixture, &unhedged);
	has_not = fixture_memory(fixture, "has not");
	fixture_memory(fixture, "down");
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	assert_int_equal(memory_server_requests(has_not), 0);
	assert_int_equal(find(fixture, &artifact, NULL), -ENOENT);
	fixture_end_broker(fixture);

	/* an added server has had no request yet */
	fixture_broker(fixture, &unhedged);
	fixture_memory(fixture, "has not");
	fixture_memory(fixture, "down");
	put_elf(fixture_memory(fixture, "new"), 0xa, 0xa);
	assert_int_equal(find(fixture, &artifact, NULL), -EINPROGRESS);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
}

/* An unsupported kind gets an entry of this process alone, for a short time, against a burst of requests. */
static void test_unsupported_is_not_cached_as_absence(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *server;
	struct call *call;
	unsigned ttl;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	memory_server_set_default(server, BID_OUTCOME_UNSUPPORTED);
	/* however often: its time does not grow */
	for (unsigned times = 1; times <= 3; times++) {
		assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
		sleep_ms(300); /* the result expires */
		assert_int_equal(fetch(fixture, &artifact, &call), -ENOENT);
		assert_int_equal(call->n_reports, 1);
		assert_int_equal(call->outcomes[0], BID_OUTCOME_UNSUPPORTED);
		assert_int_equal(memory_server_requests(server), times);
		assert_int_equal(stats_of(fixture).negative_entries, 0);
		assert_int_equal(find(fixture, &artifact, NULL), -EINPROGRESS);
		assert_int_equal(bid_negative_lookup(fixture->broker->negative, &artifact, "memory", &ttl),
				 BID_OUTCOME_UNSUPPORTED);
		assert_in_range(ttl, 30, 90);
		bid_negative_forget(fixture->broker->negative, &artifact, "memory");
		sleep_ms(300);
	}
	put_elf(server, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
	fixture_end_broker(fixture);

	/* the entry is not for the next process */
	artifact = elf_of(0xb);
	fixture_broker(fixture, &unhedged);
	memory_server_set_default(fixture_memory(fixture, "memory"), BID_OUTCOME_UNSUPPORTED);
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	fixture_end_broker(fixture);
	fixture_broker(fixture, &unhedged);
	put_elf(fixture_memory(fixture, "memory"), 0xb, 0xb);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
}

/* A known bug of servers: "no" for a section that they have. */
static void test_section_absence_is_not_cached(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = request_of(0xa, BID_KIND_SECTION), debuginfo = request_of(0xa, BID_KIND_DEBUGINFO);
	struct bid_subpath *name;
	struct bid_server *server;
	size_t len;
	const void *elf = elf_bytes(0xa, &len);

	assert_int_equal(bid_subpath_section(".none", &name), 0);
	artifact.subpath = name;
	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	assert_int_equal(memory_server_put(server, &debuginfo, elf, len), 0);
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	sleep_ms(300); /* the result expires */
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	/* two requests for the section, and one for each file that may contain it, of which one is cached as absent */
	assert_int_equal(memory_server_requests(server), 4);
	assert_int_equal(stats_of(fixture).negative_entries, 1);
	bid_subpath_unref(name);
}

static void test_unavailable_is_not_cached(void **state)
{
	static const enum bid_outcome outcomes[] = { BID_OUTCOME_UNAVAILABLE, BID_OUTCOME_REFUSED, BID_OUTCOME_CANCELLED,
						     BID_OUTCOME_FAILED, BID_OUTCOME_NONE };
	struct fixture *fixture = *state;
	struct bid_server *bad;

	fixture_broker(fixture, &unhedged);
	bad = fixture_memory(fixture, "bad");
	fixture_memory(fixture, "good");
	for (uint8_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++) {
		struct bid_artifact artifact = elf_of(0x10 + i);
		struct call *call;

		memory_server_set_default(bad, outcomes[i]);
		assert_int_equal(fetch(fixture, &artifact, &call), -EHOSTUNREACH);
		assert_int_equal(call->n_reports, 2);
		assert_int_equal(call->outcomes[0], outcomes[i]);
		assert_int_equal(call->outcomes[1], BID_OUTCOME_ABSENT);
		assert_int_equal(find(fixture, &artifact, NULL), -EINPROGRESS);
	}
	/* but that the other one said "no" is */
	assert_int_equal(stats_of(fixture).negative_entries, sizeof(outcomes) / sizeof(*outcomes));
	assert_int_equal(stats_of(fixture).unknown, sizeof(outcomes) / sizeof(*outcomes));
}

/* Lookups queued behind the first get its result, without attempts of their own. */
static void test_unknown_result_is_kept_for_its_ttl(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *server;
	struct call *call;
	int64_t begun;
	unsigned requests;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	memory_server_set_default(server, BID_OUTCOME_UNAVAILABLE);
	begun = now_ms();
	for (int i = 0; i < 50; i++) {
		assert_int_equal(fetch(fixture, &artifact, &call), -EHOSTUNREACH);
		assert_int_equal(call->n_reports, 1);
		assert_int_equal(call->outcomes[0], BID_OUTCOME_UNAVAILABLE);
	}
	requests = memory_server_requests(server);
	assert_in_range(requests, 1, 1 + (now_ms() - begun) / BID_GRACE_MS);
	sleep_ms(300);
	put_elf(server, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
	assert_int_equal(memory_server_requests(server), requests + 1);
}

/* Add two servers: @ret_held, the first candidate, and one in memory, which is returned. */
static struct bid_server *second_to_held(struct fixture *fixture, struct held_server **ret_held)
{
	fixture_broker(fixture, &unhedged);
	*ret_held = fixture_held(fixture, "held");
	return fixture_memory(fixture, "second");
}

static void test_server_that_cannot_start_is_unknown(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), other = elf_of(0xb);
	struct bid_server *second;
	struct held_server *held;
	struct call *call;

	second = second_to_held(fixture, &held);
	held->start_error = -ENOBUFS;
	put_elf(second, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_UNAVAILABLE);
	assert_string_equal(call->texts[0], strerror(ENOBUFS));
	assert_int_equal(fetch(fixture, &other, NULL), -EHOSTUNREACH);
	assert_int_equal(find(fixture, &other, NULL), -EINPROGRESS);
}

static struct rlimit files_before;

static void exhaust_descriptors(void)
{
	struct rlimit none = files_before;

	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
}

/* A local error ends the download, and the caller gets it: no other server gets a request. */
static void test_local_error_ends_the_download(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *second;
	struct held_server *held;
	struct call *call;

	second = second_to_held(fixture, &held);
	held_elf(held, 0xa);
	held->before_header = exhaust_descriptors;
	put_elf(second, 0xa, 0xa);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files_before), 0);
	call = call_for(fixture, &artifact);
	call_wait(call);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files_before), 0);
	assert_int_equal(call->error, -EMFILE);
	assert_int_equal(call->n_reports, 1);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_FAILED);
	assert_int_equal(memory_server_requests(second), 0);
	assert_int_equal(find(fixture, &artifact, NULL), -EINPROGRESS);
}

/* A body announced as larger than the disk is refused before its first byte. It may be wrong, so others get a request. */
static void test_announced_size_above_space_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), other = elf_of(0xb);
	struct bid_server *second;
	struct held_server *held;
	struct call *call;

	second = second_to_held(fixture, &held);
	held_elf(held, 0xa);
	held->announce = UINT64_MAX / 16;
	put_elf(second, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_FAILED);
	assert_int_equal(held->accepted, 0);

	/* the second delivered last, and gets the first request */
	assert_int_equal(fetch(fixture, &other, &call), -ENOSPC);
	assert_int_equal(call->n_reports, 2);
	assert_int_equal(call->outcomes[1], BID_OUTCOME_FAILED);
	assert_non_null(strstr(call->texts[1], "No space left on device for 1152921504606846975 bytes"));
	assert_int_equal(held->accepted, 0);
	assert_int_equal(find(fixture, &other, NULL), -EINPROGRESS);
}

/* A disk that fills up during a body of unknown size is no failure of the server, however often. */
static void test_unknown_size_above_space_is_refused(void **state)
{
	struct bid_limits limits = { .min_free = 1ULL << 60 };
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	bid_auto_free char *large = calloc(1, 65 << 20);
	struct held_server *held;
	struct call *call;
	size_t len;
	const void *elf = elf_bytes(0xa, &len);

	assert_non_null(large);
	memcpy(large, elf, len);
	bid_log_init("test", BID_LOG_ERROR);
	fixture_broker(fixture, &unhedged);
	assert_int_equal(bid_store_keep_limits(fixture->store, &limits), 0);
	held = fixture_held(fixture, "held");
	fixture_memory(fixture, "has nothing");
	held->body = large;
	held->body_len = 65 << 20;
	held->no_header = true;
	for (unsigned n = 1; n <= 2; n++) {
		assert_int_equal(fetch(fixture, &artifact, &call), -ENOSPC);
		assert_int_equal(call->n_reports, 2);
		/* the other's "no" is cached the second time */
		assert_int_equal(call->outcomes[n - 1], BID_OUTCOME_FAILED);
		assert_non_null(strstr(call->texts[n - 1], "did not announce how many"));
		assert_int_equal(held->requests, n);
		sleep_ms(300); /* the result expires */
	}
	assert_int_equal(held->wrong, 0);
	bid_log_init("test", BID_LOG_WARNING);
}

static const char *doomed;

static void remove_store(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/.bidfs/tmp", doomed);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/.bidfs/fetching", doomed);
	unlink(path);
	snprintf(path, sizeof(path), "%s/.bidfs", doomed);
	rename(path, "/nonexistent");
	rmdir(path);
	rmdir(doomed);
}

/* -ENOENT from the disk is no proof of absence. */
static void test_vanished_store_is_not_absence(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	held_elf(held, 0xa);
	held->before_header = remove_store;
	doomed = fixture->directory;
	fetch(fixture, &artifact, &call);
	assert_int_not_equal(access(fixture->directory, F_OK), 0);
	/* the store may have another errno for it, but not that one */
	assert_true(call->error == -EIO || call->error == -ESTALE);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_FAILED);
	assert_int_equal(stats_of(fixture).negative_entries, 0);
}

/* The error is that of a disk; the text names the errno. */
static void test_file_in_place_of_a_directory_is_reported_as_such(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	char path[128];
	struct call *call;

	fixture_broker(fixture, &unhedged);
	held_elf(fixture_held(fixture, "held"), 0xa);
	snprintf(path, sizeof(path), "%s/[debuginfod]", fixture->directory);
	assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
	fetch(fixture, &artifact, &call);
	assert_int_equal(call->error, -EIO);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_FAILED);
	assert_null(strstr(call->texts[0], strerror(EIO)));
}

/* Does @log have @count lines with @text in them? */
static void assert_lines(const char *log, const char *text, int count)
{
	int found = 0;

	for (const char *at = log; (at = strstr(at, text)); at += strlen(text))
		found++;
	assert_int_equal(found, count);
}

/* One line per fetch and per wrong body; the same error of one server is logged once, not once per library. */
static void test_each_failure_is_logged_once(void **state)
{
	struct fixture *fixture = *state;
	bid_auto_free char *log = NULL;
	struct bid_server *down, *lying;
	struct bid_server_stats stats;
	bid_auto_fd int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	bid_auto_fd int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	size_t len;

	assert_true(file >= 0 && before >= 0);
	fixture_broker(fixture, &unhedged);
	down = fixture_memory(fixture, "down");
	lying = fixture_memory(fixture, "lying");
	memory_server_set_default(down, BID_OUTCOME_UNAVAILABLE);
	put_elf(lying, 0x1, 0xa);
	put_elf(lying, 0x2, 0xa);
	put_elf(lying, 0xa, 0xa);

	bid_log_init("test", BID_LOG_INFO);
	dup2(file, STDERR_FILENO);
	for (uint8_t byte = 1; byte < 0xc; byte++) {
		struct bid_artifact artifact = elf_of(byte);

		fetch(fixture, &artifact, NULL);
	}
	dup2(before, STDERR_FILENO);
	bid_log_init("test", BID_LOG_ERROR);

	assert_int_equal(bid_read_file(file, 1 << 20, &log, &len), 0);
	assert_lines(log, "warning: unavailable, unavailable: 'down'", 1);
	assert_lines(log, "refused '", 2);
	assert_lines(log, "refused '0101010101010101010101010101010101010101/elf' from lying", 1);
	assert_lines(log, "bytes from lying: '0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a/elf'", 1);
	assert_lines(log, "\n", 4);

	assert_int_equal(bid_broker_server_stats(fixture->broker, 0, &stats), 0);
	assert_int_equal(stats.outcomes[BID_OUTCOME_UNAVAILABLE], 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_absence_everywhere_is_cached),
		fixture_test(test_cached_absence_expires),
		fixture_test(test_absence_is_cached_per_server),
		fixture_test(test_unsupported_is_not_cached_as_absence),
		fixture_test(test_section_absence_is_not_cached),
		fixture_test(test_unavailable_is_not_cached),
		fixture_test(test_unknown_result_is_kept_for_its_ttl),
		fixture_test(test_server_that_cannot_start_is_unknown),
		fixture_test(test_local_error_ends_the_download),
		fixture_test(test_announced_size_above_space_is_refused),
		fixture_test(test_unknown_size_above_space_is_refused),
		fixture_test(test_vanished_store_is_not_absence),
		fixture_test(test_file_in_place_of_a_directory_is_reported_as_such),
		fixture_test(test_each_failure_is_logged_once),
	};

	/* log errors only: the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
