// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the keeper of a store does by the clock, which goes here as fast as a test wants. */
#include "store_scene.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bid/evict.h>

enum {
	MINUTE_S = 60,
	HOUR_S = 3600,
	PATIENCE_MS = 20000,
	STEP_MS = 5,
	LATE_MS = 2000,
	REST_MS = 100, /* in which nothing is to happen */
};

static atomic_llong passed_s; /* beside the machine's own time */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int r = (int)syscall(SYS_clock_gettime, clock, time);

	if (r == 0 && clock == CLOCK_MONOTONIC)
		time->tv_sec += atomic_load(&passed_s);
	return r;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	for (;;) {
		struct timespec now, next;
		int r;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
			return ETIMEDOUT;
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &next);
		next.tv_nsec += STEP_MS * 1000000L;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		r = pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &next);
		if (r != ETIMEDOUT)
			return r;
	}
}

static int count(void *user, const struct stat *st)
{
	atomic_uint *asked = user;

	assert_null(st);
	atomic_fetch_add(asked, 1);
	return 0;
}

/* On a full machine the keeper may begin its next minute when that of the test is over: then there is one more. */
static void await(const atomic_uint *asked, unsigned wanted)
{
	for (unsigned ms = 0; atomic_load(asked) < wanted; ms += STEP_MS) {
		assert_true(ms < PATIENCE_MS);
		if (ms % LATE_MS == LATE_MS - STEP_MS)
			atomic_fetch_add(&passed_s, MINUTE_S);
		usleep(STEP_MS * 1000);
	}
	usleep(REST_MS * 1000);
	assert_int_equal(atomic_load(asked), wanted);
}

/* The store's keeper has begun when its first minute is over, which begins when it does. Returns how often it has asked. */
static unsigned begin(const struct store_scene *scene, atomic_uint *asked)
{
	bid_store_on_let_go(scene->store, count, asked);
	assert_int_equal(bid_store_keep_limits(scene->store, &(struct bid_limits){ 0 }), 0);
	usleep(REST_MS * 1000);
	assert_int_equal(atomic_load(asked), 0);
	for (unsigned ms = 0; atomic_load(asked) == 0; ms += REST_MS) {
		assert_true(ms < PATIENCE_MS);
		/* not an hour in all */
		if (ms % (4 * REST_MS) == 0)
			atomic_fetch_add(&passed_s, MINUTE_S);
		usleep(REST_MS * 1000);
	}
	/* it may have asked just before one more minute was over */
	usleep(REST_MS * 1000);
	return atomic_load(asked);
}

static void each_minute_what_nobody_reads_is_let_go(void **state)
{
	const struct store_scene *scene = *state;
	atomic_uint asked = 0;

	unsigned minutes = begin(scene, &asked);

	for (unsigned more = 0; more < 3; more++) {
		atomic_fetch_add(&passed_s, MINUTE_S);
		await(&asked, ++minutes);
	}
	bid_store_on_let_go(scene->store, NULL, NULL);
	atomic_fetch_add(&passed_s, MINUTE_S);
	await(&asked, minutes);
}

static void each_hour_what_is_old_is_forgotten(void **state)
{
	const struct store_scene *scene = *state;
	atomic_uint asked = 0;

	/* what is there at its beginning is looked at then */
	unsigned minutes = begin(scene, &asked);

	run(scene, "mkdir -p store/.bidfs/scan && cd store/.bidfs/scan && touch fedcba9876543210 && touch -d '40 days ago' "
		   "0123456789abcdef");
	atomic_fetch_add(&passed_s, MINUTE_S);
	await(&asked, minutes + 1);
	assert_true(has_path(scene, ".bidfs/scan/0123456789abcdef"));
	atomic_fetch_add(&passed_s, HOUR_S);
	for (unsigned ms = 0; has_path(scene, ".bidfs/scan/0123456789abcdef"); ms += STEP_MS) {
		assert_true(ms < PATIENCE_MS);
		usleep(STEP_MS * 1000);
	}
	assert_true(has_path(scene, ".bidfs/scan/fedcba9876543210"));
	bid_store_on_let_go(scene->store, NULL, NULL);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
	const struct CMUnitTest tests[] = {
		TEST(each_minute_what_nobody_reads_is_let_go),
		TEST(each_hour_what_is_old_is_forgotten),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
