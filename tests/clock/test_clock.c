// SPDX-License-Identifier: LGPL-2.1-or-later
#include "test_clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)
#define STEP_NS INT64_C(5000000)
#define YEAR_2001 1000000000

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *unblocked, size_t size);

static atomic_llong own_offset;
static atomic_llong *offset = &own_offset; /* ns */

__attribute__((constructor)) static void share_offset(void)
{
	const char *path = getenv("BID_TEST_CLOCK");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *shared = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*offset), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (shared != MAP_FAILED)
		offset = shared;
	else if (path)
		abort();
}

void test_clock_advance_ms(int64_t ms)
{
	atomic_fetch_add(offset, ms * 1000000);
}

static struct timespec plus(struct timespec time, int64_t ns)
{
	ns += time.tv_nsec;
	return (struct timespec){ .tv_sec = time.tv_sec + ns / SECOND_NS, .tv_nsec = ns % SECOND_NS };
}

static struct timespec machine_time(clockid_t clock)
{
	struct timespec time;

	syscall(SYS_clock_gettime, clock, &time);
	return time;
}

/* The clocks of threads and processes measure work and stay the machine's. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret_time);

	if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC ||
		       clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME))
		*ret_time = plus(*ret_time, atomic_load(offset));
	return r;
}

time_t time(time_t *ret_time)
{
	time_t now = plus(machine_time(CLOCK_REALTIME), atomic_load(offset)).tv_sec;

	if (ret_time)
		*ret_time = now;
	return now;
}

static int64_t left_ns(clockid_t clock, const struct timespec *until)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)(until->tv_sec - now.tv_sec) * SECOND_NS + until->tv_nsec - now.tv_nsec;
}

/*
 * Wait for a step at most. The caller checks its condition again, as after any spurious wake-up: a signal between two steps would
 * be lost.
 */
int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	static int (*_Atomic wait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
	int64_t left = left_ns(clock, until);
	struct timespec step;
	int r;

	if (left <= 0)
		return ETIMEDOUT;
	if (!wait)
		wait = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	step = plus(machine_time(CLOCK_MONOTONIC), left < STEP_NS ? left : STEP_NS);
	r = wait(cond, mutex, CLOCK_MONOTONIC, &step);
	return r == ETIMEDOUT && left_ns(clock, until) > 0 ? 0 : r;
}

/* The value of the deadline shows its clock: the monotonic one counts from the start of the machine. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	return pthread_cond_clockwait(cond, mutex, until->tv_sec < YEAR_2001 ? CLOCK_MONOTONIC : CLOCK_REALTIME, until);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *unblocked)
{
	static int (*_Atomic wait)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	struct timespec until;
	int64_t left;
	int r;

	if (!wait)
		wait = dlsym(RTLD_NEXT, "ppoll");
	if (!timeout)
		return wait(fds, n, NULL, unblocked);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until = plus(until, timeout->tv_sec * SECOND_NS + timeout->tv_nsec);
	do {
		left = left_ns(CLOCK_MONOTONIC, &until);
		r = wait(fds, n, &(struct timespec){ .tv_nsec = left < 0 ? 0 : left < STEP_NS ? left : STEP_NS }, unblocked);
	} while (r == 0 && left > 0);
	return r;
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec timeout = { .tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L };

	return ppoll(fds, n, timeout_ms < 0 ? NULL : &timeout, NULL);
}

/* Names of ppoll(2) and poll(2) in programs built with _FORTIFY_SOURCE. */
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *unblocked, size_t size)
{
	return ppoll(fds, n, timeout, unblocked);
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t size)
{
	return poll(fds, n, timeout_ms);
}
