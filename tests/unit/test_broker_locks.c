// SPDX-License-Identifier: LGPL-2.1-or-later
/* Brokers of different processes download an artifact into one store once, even if the first process ends or dies. */
#include "held_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../clock/test_clock.h"
#include "api/download_lock.h"
#include "base/cleanup.h"
#include "broker/download.h"
#include "scratch.h"

/* A holder is not waited for any longer. */
#define AWAIT_MS 30000

/* Two on one directory, each with a store, a broker and a server of its own. */
enum { ONE, OTHER, N };

struct fixtures {
	struct fixture *fixture[N];
	struct held_server *held[N];
};

static int begin(void **state)
{
	struct fixtures *fixtures = calloc(1, sizeof(*fixtures));
	struct fixture *other;

	assert_non_null(fixtures);
	for (int i = 0; i < N; i++)
		fixture_begin((void **)&fixtures->fixture[i]);
	other = fixtures->fixture[OTHER];
	bid_store_free(other->store);
	assert_int_equal(scratch_remove(other->directory), 0);
	memcpy(other->directory, fixtures->fixture[ONE]->directory, sizeof(other->directory));
	assert_int_equal(bid_store_open(other->directory, BID_STORE_WRITE, &other->store), 0);
	*state = fixtures;
	return 0;
}

static int end(void **state)
{
	struct fixtures *fixtures = *state;

	fixture_end_broker(fixtures->fixture[ONE]);
	fixture_end_broker(fixtures->fixture[OTHER]);
	for (int i = 0; i < N; i++)
		fixture_end((void **)&fixtures->fixture[i]);
	free(fixtures);
	return 0;
}

static void equip(struct fixtures *fixtures, int which, const struct bid_broker_config *config)
{
	fixture_broker(fixtures->fixture[which], config);
	fixtures->held[which] = fixture_held(fixtures->fixture[which], "held");
	held_elf(fixtures->held[which], 0xa);
}

/* Number of requests to @held. Its broker may be asking it. */
static unsigned requests_of(struct held_server *held)
{
	unsigned requests;

	pthread_mutex_lock(&held->lock);
	requests = held->requests;
	pthread_mutex_unlock(&held->lock);
	return requests;
}

/* Wait until a download of @fixture waits for another process. With @postpone the next poll is in an hour. */
static void wait_for_poll(struct fixture *fixture, bool postpone)
{
	int64_t begun = now_ms();
	struct bid_download *download;
	bool polls;

	do {
		assert_true(now_ms() - begun < PATIENCE_MS);
		sleep_ms(1);
		pthread_mutex_lock(&fixture->broker->lock);
		download = TAILQ_FIRST(&fixture->broker->downloads);
		polls = download && download->lock_wait.poll_timer.timers != NULL;
		if (polls && postpone)
			bid_broker_arm(fixture->broker, &download->lock_wait.poll_timer, now_ms() + 3600 * 1000);
		pthread_mutex_unlock(&fixture->broker->lock);
	} while (!polls);
}

/* The first fetches, and is held at @hold. */
static struct call *first_asks(struct fixtures *fixtures, const struct bid_artifact *artifact, enum hold_point hold)
{
	struct call *first;

	held_hold(fixtures->held[ONE], hold);
	first = call_for(fixtures->fixture[ONE], artifact);
	held_wait(fixtures->held[ONE], 1);
	return first;
}

/* The first fetches, and the second asks for the same. */
static struct call *both_ask(struct fixtures *fixtures, const struct bid_artifact *artifact, struct call **ret_first)
{
	struct call *second;

	*ret_first = first_asks(fixtures, artifact, HOLD_MIDDLE);
	second = call_for(fixtures->fixture[OTHER], artifact);
	wait_for_poll(fixtures->fixture[OTHER], false);
	sleep_ms(300);
	assert_false(call_over(second));
	assert_int_equal(requests_of(fixtures->held[OTHER]), 0);
	return second;
}

static void test_two_brokers_download_once(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second;

	equip(fixtures, ONE, &unhedged);
	equip(fixtures, OTHER, &unhedged);
	second = both_ask(fixtures, &artifact, &first);
	held_hold(fixtures->held[ONE], HOLD_NOWHERE);
	assert_int_equal(call_wait(first), 0);
	assert_int_equal(call_wait(second), 0);
	assert_content(second->fd, 0xa);
	assert_int_equal(requests_of(fixtures->held[OTHER]), 0);
}

static void test_lock_wait_does_not_delay_other_requests(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa), another = elf_of(0xb);
	struct call *first, *second;

	equip(fixtures, ONE, &unhedged);
	equip(fixtures, OTHER, &unhedged);
	second = both_ask(fixtures, &artifact, &first);
	held_elf(fixtures->held[OTHER], 0xb);
	assert_int_equal(fetch(fixtures->fixture[OTHER], &another, NULL), 0);
	assert_false(call_over(second));
	held_hold(fixtures->held[ONE], HOLD_NOWHERE);
	assert_int_equal(call_wait(second), 0);
}

static void test_absence_reaches_both_brokers(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second;

	equip(fixtures, ONE, &unhedged);
	equip(fixtures, OTHER, &unhedged);
	fixtures->held[ONE]->body = NULL;
	first = first_asks(fixtures, &artifact, HOLD_HEAD);
	second = call_for(fixtures->fixture[OTHER], &artifact);
	wait_for_poll(fixtures->fixture[OTHER], false);
	held_hold(fixtures->held[ONE], HOLD_NOWHERE);
	assert_int_equal(call_wait(first), -ENOENT);
	assert_int_equal(call_wait(second), -ENOENT);
	assert_int_equal(requests_of(fixtures->held[OTHER]), 0);
}

/* A lock waiter for a section gets -ENOENT if the other process has stored the files and they lack the section. */
static void test_section_missing_in_downloaded_file_is_absent(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact section = request_of(0xa, BID_KIND_SECTION);
	struct fixture *fixture = fixtures->fixture[ONE];
	struct call *first, *second;
	struct bid_subpath *name;
	struct bid_added added;
	char path[96];
	size_t len;
	const void *bytes;
	FILE *file;

	assert_int_equal(bid_subpath_section(".nope", &name), 0);
	section.subpath = name;
	equip(fixtures, ONE, &unhedged);
	equip(fixtures, OTHER, &unhedged);
	second = both_ask(fixtures, &section, &first);
	snprintf(path, sizeof(path), "%s.elf", fixture->directory);
	file = fopen(path, "we");
	assert_non_null(file);
	bytes = elf_bytes(0xa, &len);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(bid_store_add(fixture->store, path, BID_LINK_COPY, &added), 0);
	assert_int_equal(unlink(path), 0);
	bid_broker_cancel(fixture->broker, first->waiter_id);
	assert_int_equal(call_wait(first), -EINTR);
	assert_int_equal(call_wait(second), -ENOENT);
	assert_int_equal(requests_of(fixtures->held[OTHER]), 0);
	bid_artifact_release(&section);
}

/* The breaker of each process limits its cost of an outage. */
static void test_second_process_requests_after_failed_first(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second;

	equip(fixtures, ONE, &unhedged);
	equip(fixtures, OTHER, &unhedged);
	fixtures->held[ONE]->body = NULL;
	fixtures->held[ONE]->outcome = BID_OUTCOME_UNAVAILABLE;
	first = first_asks(fixtures, &artifact, HOLD_HEAD);
	second = call_for(fixtures->fixture[OTHER], &artifact);
	wait_for_poll(fixtures->fixture[OTHER], false);
	held_hold(fixtures->held[ONE], HOLD_NOWHERE);
	assert_int_equal(call_wait(first), -EHOSTUNREACH);
	assert_int_equal(call_wait(second), 0);
	assert_int_equal(requests_of(fixtures->held[OTHER]), 1);
}

static void test_other_servers_mean_no_lock_wait(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first;

	equip(fixtures, ONE, &unhedged);
	fixture_broker(fixtures->fixture[OTHER], &unhedged);
	fixtures->held[OTHER] = fixture_held(fixtures->fixture[OTHER], "sound");
	held_elf(fixtures->held[OTHER], 0xa);
	first = first_asks(fixtures, &artifact, HOLD_HEAD);
	assert_int_equal(fetch(fixtures->fixture[OTHER], &artifact, NULL), 0);
	assert_false(call_over(first));
	held_hold(fixtures->held[ONE], HOLD_NOWHERE);
	assert_int_equal(call_wait(first), 0);
}

static void test_next_process_takes_over_the_download(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second;

	equip(fixtures, ONE, &unhedged);
	equip(fixtures, OTHER, &unhedged);
	second = both_ask(fixtures, &artifact, &first);
	fixture_end_broker(fixtures->fixture[ONE]);
	assert_int_equal(call_wait(first), -EINTR);
	assert_int_equal(call_wait(second), 0);
	assert_int_equal(requests_of(fixtures->held[OTHER]), 1);
}

static void test_end_of_broker_or_caller_ends_wait_for_holder(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second;

	equip(fixtures, ONE, &unhedged);
	equip(fixtures, OTHER, &unhedged);
	first = first_asks(fixtures, &artifact, HOLD_MIDDLE);
	second = call_for(fixtures->fixture[OTHER], &artifact);
	wait_for_poll(fixtures->fixture[OTHER], true);
	bid_broker_cancel(fixtures->fixture[OTHER]->broker, second->waiter_id);
	assert_int_equal(call_wait(second), -EINTR);
	wait_for_no_downloads(fixtures->fixture[OTHER]);
	second = call_for(fixtures->fixture[OTHER], &artifact);
	wait_for_poll(fixtures->fixture[OTHER], true);
	fixture_end_broker(fixtures->fixture[OTHER]);
	assert_int_equal(call_wait(second), -EINTR);
	assert_int_equal(fixtures->held[OTHER]->requests, 0);
	held_hold(fixtures->held[ONE], HOLD_NOWHERE);
	assert_int_equal(call_wait(first), 0);
}

/* A caller that cancels and comes back within one process gets a new download, without waiting for the old one. */
static void test_abandoned_download_blocks_no_caller(void **state)
{
	struct fixtures *fixtures = *state;
	struct fixture *fixture = fixtures->fixture[ONE];
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second;

	equip(fixtures, ONE, &unhedged);
	held_hold(fixtures->held[ONE], HOLD_HEAD);
	fixtures->held[ONE]->deaf = true;
	first = call_for(fixture, &artifact);
	held_wait(fixtures->held[ONE], 1);
	bid_broker_cancel(fixture->broker, first->waiter_id);
	second = call_for(fixture, &artifact);
	/* the server, busy with the first, has the second queued */
	held_wait_requests(fixtures->held[ONE], 2);
	held_hold(fixtures->held[ONE], HOLD_NOWHERE);
	assert_int_equal(call_wait(first), -EINTR);
	assert_int_equal(call_wait(second), 0);
}

/* Start a process that holds the lock of @artifact at the server "held". */
static pid_t hold_elsewhere(const char *directory, const struct bid_artifact *artifact)
{
	uint64_t key = bid_download_lock_key(artifact, bid_download_lock_server("held"));
	struct bid_download_locks *locks;
	struct bid_store *store;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (bid_store_open(directory, BID_STORE_WRITE, &store) < 0 || bid_download_locks_new(store, &locks) < 0 ||
		    bid_download_locks_try(locks, key) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_elsewhere(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_killed_holder_is_not_waited_for(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	pid_t pid = hold_elsewhere(fixtures->fixture[ONE]->directory, &artifact);
	struct call *call;

	equip(fixtures, ONE, &unhedged);
	call = call_for(fixtures->fixture[ONE], &artifact);
	wait_for_poll(fixtures->fixture[ONE], false);
	assert_int_equal(requests_of(fixtures->held[ONE]), 0);
	end_elsewhere(pid);
	assert_int_equal(call_wait(call), 0);
}

static void test_stopped_holder_is_waited_for_half_a_minute(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	pid_t pid = hold_elsewhere(fixtures->fixture[ONE]->directory, &artifact);
	struct call *call;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	equip(fixtures, ONE, &unhedged);
	call = call_for(fixtures->fixture[ONE], &artifact);
	wait_for_poll(fixtures->fixture[ONE], false);
	test_clock_advance_ms(AWAIT_MS / 2);
	sleep_ms(300);
	assert_int_equal(requests_of(fixtures->held[ONE]), 0);
	test_clock_advance_ms(AWAIT_MS / 2);
	assert_int_equal(call_wait(call), 0);
	assert_int_equal(requests_of(fixtures->held[ONE]), 1);
	end_elsewhere(pid);
}

static void test_readers_have_half_their_wait_left_when_holder_is_stopped(void **state)
{
	static const struct bid_broker_config config = { .wait_ms = 20000 };
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	pid_t pid = hold_elsewhere(fixtures->fixture[ONE]->directory, &artifact);
	struct call *call;

	equip(fixtures, ONE, &config);
	call = call_for(fixtures->fixture[ONE], &artifact);
	wait_for_poll(fixtures->fixture[ONE], false);
	test_clock_advance_ms(10000);
	assert_int_equal(call_wait(call), 0);
	end_elsewhere(pid);
}

/* The file only coordinates processes: after its loss, later requests use a new one. */
static void test_removed_lock_file_is_replaced(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa), nowhere = elf_of(0x1);
	char path[128];
	struct call *first, *second;

	equip(fixtures, ONE, &unhedged);
	equip(fixtures, OTHER, &unhedged);
	fixtures->held[ONE]->body = NULL;
	assert_int_equal(fetch(fixtures->fixture[ONE], &nowhere, NULL), -ENOENT);
	held_elf(fixtures->held[ONE], 0xa);
	snprintf(path, sizeof(path), "%s/.bidfs/fetching", fixtures->fixture[ONE]->directory);
	assert_int_equal(unlink(path), 0);
	second = both_ask(fixtures, &artifact, &first);
	held_hold(fixtures->held[ONE], HOLD_NOWHERE);
	assert_int_equal(call_wait(second), 0);
	assert_int_equal(requests_of(fixtures->held[OTHER]), 0);
}

static void test_missing_lock_support_still_downloads(void **state)
{
	struct fixtures *fixtures = *state;
	struct bid_artifact artifact = elf_of(0xa);
	char path[128];

	snprintf(path, sizeof(path), "%s/.bidfs", fixtures->fixture[ONE]->directory);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/.bidfs/fetching", fixtures->fixture[ONE]->directory);
	assert_int_equal(mkdir(path, 0755), 0);
	equip(fixtures, ONE, &unhedged);
	assert_int_equal(fetch(fixtures->fixture[ONE], &artifact, NULL), 0);
}

/* The gate of fcntl(2): a lock service that hangs. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool closed;
	unsigned waiting;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

int fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (command == F_OFD_SETLK) {
		pthread_mutex_lock(&gate.lock);
		gate.waiting += gate.closed;
		pthread_cond_broadcast(&gate.changed);
		while (gate.closed)
			pthread_cond_wait(&gate.changed, &gate.lock);
		pthread_mutex_unlock(&gate.lock);
	}
	return (int)syscall(SYS_fcntl, fd, command, argument);
}

static void set_gate(bool closed)
{
	pthread_mutex_lock(&gate.lock);
	gate.closed = closed;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static void test_a_lock_service_that_hangs_costs_others_a_second(void **state)
{
	struct fixtures *fixtures = *state;
	struct fixture *fixture = fixtures->fixture[ONE];
	struct bid_artifact artifact = elf_of(0xa);
	struct caller caller;

	equip(fixtures, ONE, &unhedged);
	set_gate(true);
	caller_start(&caller, fixture, 0xb);
	pthread_mutex_lock(&gate.lock);
	while (gate.waiting == 0)
		wait_changed(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
	set_gate(false);
	assert_int_equal(pthread_join(caller.thread, NULL), 0);
	call_wait(caller.call);
}

#define fixtures_test(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* before a test moves the clock, which the mutex does not follow */
		fixtures_test(test_a_lock_service_that_hangs_costs_others_a_second),
		fixtures_test(test_two_brokers_download_once),
		fixtures_test(test_lock_wait_does_not_delay_other_requests),
		fixtures_test(test_absence_reaches_both_brokers),
		fixtures_test(test_section_missing_in_downloaded_file_is_absent),
		fixtures_test(test_other_servers_mean_no_lock_wait),
		fixtures_test(test_next_process_takes_over_the_download),
		fixtures_test(test_end_of_broker_or_caller_ends_wait_for_holder),
		fixtures_test(test_abandoned_download_blocks_no_caller),
		fixtures_test(test_second_process_requests_after_failed_first),
		fixtures_test(test_killed_holder_is_not_waited_for),
		fixtures_test(test_stopped_holder_is_waited_for_half_a_minute),
		fixtures_test(test_readers_have_half_their_wait_left_when_holder_is_stopped),
		fixtures_test(test_removed_lock_file_is_replaced),
		fixtures_test(test_missing_lock_support_still_downloads),
	};

	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
