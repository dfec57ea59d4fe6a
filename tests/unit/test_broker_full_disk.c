// SPDX-License-Identifier: LGPL-2.1-or-later
/* A disk that is nearly full: eviction for one download delays only that one. */
#include "held_server.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/log.h"

/* Room for one of the files of fixture_compile(), but not for two. */
static int begin(void **state)
{
	struct fixture *fixture;

	fixture_begin(state);
	fixture = *state;
	bid_store_free(fixture->store);
	assert_int_equal(mount("tmpfs", fixture->directory, "tmpfs", 0, "size=500k"), 0);
	assert_int_equal(bid_store_open(fixture->directory, BID_STORE_WRITE, &fixture->store), 0);
	fixture_broker(fixture, &unhedged);
	return 0;
}

static int end(void **state)
{
	struct fixture *fixture = *state;

	fixture_end_broker(fixture);
	umount2(fixture->directory, MNT_DETACH);
	return fixture_end(state);
}

static struct held_server *fetch_first(struct fixture *fixture, struct call **ret_call)
{
	struct held_server *held = fixture_held(fixture, "held");
	struct bid_artifact first = elf_of(0xa);

	held_elf(held, 0xa);
	assert_int_equal(fetch(fixture, &first, ret_call), 0);
	return held;
}

/* A cached descriptor, which takes long to drop. */
struct slow {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool at_work, may_end;
	struct call *call;
};

static int drop_fd_slowly(void *user, const struct stat *st)
{
	struct slow *slow = user;

	pthread_mutex_lock(&slow->lock);
	slow->at_work = true;
	pthread_cond_broadcast(&slow->changed);
	while (!slow->may_end)
		pthread_cond_wait(&slow->changed, &slow->lock);
	bid_close(slow->call->fd);
	slow->call->fd = -1;
	pthread_mutex_unlock(&slow->lock);
	return -1;
}

static void let_end(struct slow *slow)
{
	pthread_mutex_lock(&slow->lock);
	slow->may_end = true;
	pthread_cond_broadcast(&slow->changed);
	pthread_mutex_unlock(&slow->lock);
}

static void await_work(struct slow *slow)
{
	pthread_mutex_lock(&slow->lock);
	while (!slow->at_work)
		wait_changed(&slow->changed, &slow->lock);
	pthread_mutex_unlock(&slow->lock);
}

/* Eviction for one transfer does not block the server's only thread in body(). */
static void test_full_disk_pauses_body_until_evicted(void **state)
{
	/* an announced size fails before the body; an unknown one when the body is written */
	static const bool no_header[] = { false, true };

	for (size_t i = 0; i < sizeof(no_header) / sizeof(no_header[0]); i++) {
		struct slow slow = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
		struct bid_artifact first = elf_of(0xa), second = elf_of(0xb);
		struct fixture *fixture;
		struct held_server *held;
		struct call *call;

		if (i > 0)
			begin(state);
		fixture = *state;
		held = fetch_first(fixture, &slow.call);
		bid_store_on_drop_fd(fixture->store, drop_fd_slowly, &slow);
		held_elf(held, 0xb);
		held->no_header = no_header[i];
		call = call_for(fixture, &second);
		await_work(&slow);
		held_wait_paused(held, 1);
		assert_false(call_over(call));
		let_end(&slow);
		assert_int_equal(call_wait(call), 0);
		assert_content(call->fd, 0xb);
		assert_int_equal(find(fixture, &first, NULL), -EINPROGRESS);
		bid_store_on_drop_fd(fixture->store, NULL, NULL);
		/* each once */
		assert_int_equal(held->requests, 2);
		assert_int_equal(held->paused, 1);
		if (i == 0)
			end(state);
	}
}

/* A cancel does not wait for the eviction. */
static void test_cancel_of_paused_download_ends_at_once(void **state)
{
	static struct slow slow = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
	struct bid_artifact second = elf_of(0xb);
	struct fixture *fixture = *state;
	struct held_server *held = fetch_first(fixture, &slow.call);
	struct call *call;

	bid_store_on_drop_fd(fixture->store, drop_fd_slowly, &slow);
	held_elf(held, 0xb);
	call = call_for(fixture, &second);
	await_work(&slow);
	held_wait_paused(held, 1);
	bid_broker_cancel(fixture->broker, call->waiter_id);
	assert_int_equal(call_wait(call), -EINTR);
	held_wait_done(held, 2);
	let_end(&slow);
	fixture_end_broker(fixture);
	fixture->broker = NULL;
	bid_store_on_drop_fd(fixture->store, NULL, NULL);
}

static void test_file_that_never_fits_is_refused(void **state)
{
	struct bid_artifact first = elf_of(0xa), second = elf_of(0xb);
	struct fixture *fixture = *state;
	struct held_server *held;
	struct call *call;

	held = fetch_first(fixture, &call);
	bid_close(call->fd);
	call->fd = -1;
	held_elf(held, 0xb);
	held->announce = 1 << 20;
	assert_int_equal(fetch(fixture, &second, &call), -ENOSPC);
	assert_int_equal(held->requests, 2);
	assert_non_null(strstr(call->texts[0], "No space left on device for 1048576 bytes"));
	assert_int_equal(find(fixture, &first, NULL), 0);
}

/* The eviction finds once that an open file must stay, and the request is refused. */
static void test_disk_without_candidates_refuses(void **state)
{
	struct bid_artifact second = elf_of(0xb);
	struct fixture *fixture = *state;
	struct held_server *held;
	struct call *call;

	held = fetch_first(fixture, &call);
	held_elf(held, 0xb);
	assert_int_equal(fetch(fixture, &second, NULL), -ENOSPC);
	assert_int_equal(held->requests, 2);
}

#define room_test(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		room_test(test_full_disk_pauses_body_until_evicted),
		room_test(test_cancel_of_paused_download_ends_at_once),
		room_test(test_file_that_never_fits_is_refused),
		room_test(test_disk_without_candidates_refuses),
	};

	/* the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		print_message("skipped: no small file system can be mounted: %s\n", strerror(errno));
		return 77;
	}
	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
