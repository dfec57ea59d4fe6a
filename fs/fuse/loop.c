// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <bid/error.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/log.h"
#include "base/thread.h"

struct loop {
	struct fuse_session *session; /* borrowed */
	int epoll; /* tells one thread of each request, and all of the end; owned */
	int end; /* an eventfd that can be read once the session is over; owned */
	unsigned busy_poll_us; /* how long to look, 0 if nobody does */
	atomic_bool polling; /* a thread does */
	int64_t no_poll_until; /* on the clock of bid_clock_ns(): nobody looks before; of the thread that is polling */
	atomic_int error; /* what a thread ended for: 0 or a negative errno */
};

/*
 * Whether the next request wakes one of those who sleep, which is off again once it has. If there is one already, that counts. The
 * end of the connection always wakes.
 */
static void arm_epoll(const struct loop *loop, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN | EPOLLONESHOT : EPOLLONESHOT };

	if (epoll_ctl(loop->epoll, EPOLL_CTL_MOD, fuse_session_fd(loop->session), &event) < 0)
		bid_debug("%s: no thread will be woken for a request", strerror(errno));
}

/* So long nobody looks, where others want the processor, and keep it for longer than who asks does between two requests. */
#define PAUSE_NS INT64_C(100000000)
#define SLICE_NS INT64_C(1000000)

/*
 * Receive without sleeping, but for a while. Nobody else need be woken for what comes meanwhile. Where others keep the processor
 * that is left to them, polling is waiting for them, and to be woken is faster.
 */
static int poll_device(struct loop *loop, struct fuse_buf *buffer)
{
	int64_t now = bid_clock_ns(), end = now + loop->busy_poll_us * INT64_C(1000), last;
	int n;

	if (now < loop->no_poll_until)
		return -EAGAIN;
	arm_epoll(loop, false);
	do {
		last = now;
		/* whoever is to ask may wait for this processor */
		sched_yield();
		n = fuse_session_receive_buf(loop->session, buffer);
		now = bid_clock_ns();
	} while (n == -EAGAIN && now < end);
	if (now - last > SLICE_NS)
		loop->no_poll_until = now + PAUSE_NS;
	arm_epoll(loop, true);
	return n;
}

/*
 * The next request, as fuse_session_receive_buf() has it: its size, 0 once the session is over, or a negative errno.
 *
 * While nobody looks the alarm is on, or a thread that it has just woken is about to set it. So a request never waits for a thread
 * that is at work as long as another one sleeps.
 */
static int receive_request(struct loop *loop, struct fuse_buf *buffer)
{
	struct epoll_event event;
	int n = -EAGAIN;

	/* who answers may end the session, too */
	if (fuse_session_exited(loop->session))
		return 0;
	/* where nobody looks, it is not looked either whether there is one by chance */
	if (loop->busy_poll_us > 0)
		n = fuse_session_receive_buf(loop->session, buffer);
	while (n == -EAGAIN || n == -EINTR) {
		if (loop->busy_poll_us > 0 && !atomic_exchange(&loop->polling, true)) {
			n = poll_device(loop, buffer);
			atomic_store(&loop->polling, false);
			if (n != -EAGAIN)
				continue;
		}
		if (epoll_wait(loop->epoll, &event, 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (fuse_session_exited(loop->session))
			return 0;
		n = fuse_session_receive_buf(loop->session, buffer);
		arm_epoll(loop, true);
	}
	return n;
}

/* The session is over: whoever receives sees that, now and later. */
static void end_loop(struct loop *loop)
{
	if (write(loop->end, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		bid_debug("%s: the end of the session was not told", strerror(errno));
}

/* Wait for that, or for a signal of @unblocked, which is blocked otherwise. Returns 0 or -EINTR. */
static int wait_for_end(const struct loop *loop, const sigset_t *unblocked)
{
	struct pollfd end = { .fd = loop->end, .events = POLLIN };

	return ppoll(&end, 1, NULL, unblocked) < 0 ? -errno : 0;
}

static void close_loop(struct loop *loop)
{
	if (loop->epoll >= 0)
		close(loop->epoll);
	if (loop->end >= 0)
		close(loop->end);
	loop->epoll = loop->end = -1;
}

static int open_loop(struct loop *loop, struct fuse_session *session, unsigned busy_poll_us)
{
	struct epoll_event request = { .events = EPOLLIN | EPOLLONESHOT }, end = { .events = EPOLLIN };
	int fd = fuse_session_fd(session), flags = fcntl(fd, F_GETFL);

	*loop = (struct loop){ .session = session, .epoll = -1, .end = -1 };
	/* on one processor, whoever is to ask cannot do so while we look */
	loop->busy_poll_us = bid_cpus() > 1 ? busy_poll_us : 0;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->end = eventfd(0, EFD_CLOEXEC);
	/* reads of the device return at once from now on, and whoever sleeps does so in epoll_wait(2) */
	if (loop->epoll < 0 || loop->end < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &request) < 0 ||
	    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->end, &end) < 0 || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		int r = -errno;

		close_loop(loop);
		return r;
	}
	return 0;
}

static void *serve_requests(void *user)
{
	struct loop *loop = user;
	struct fuse_buf request = { 0 };
	int n;

	while ((n = receive_request(loop, &request)) > 0)
		fuse_session_process_buf(loop->session, &request);
	free(request.mem);
	if (n < 0)
		atomic_store(&loop->error, n);
	fuse_session_exit(loop->session);
	end_loop(loop);
	return NULL;
}

/* Until the session is over, by @n threads. */
static int run_threads(struct loop *loop, unsigned n)
{
	pthread_t *threads = calloc(n, sizeof(*threads));
	sigset_t all, before;
	unsigned started = 0;
	int r = threads ? 0 : -ENOMEM, waited = 0;

	/* they come while it waits, and at no other time */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (r == 0 && started < n) {
		r = bid_thread_start(&threads[started], "fuse", serve_requests, loop);
		started += r == 0;
	}
	if (r < 0 && started > 0)
		bid_warning("%s: %u of %u threads answer the kernel", bid_strerror(r), started, n);
	if (started > 0) {
		do
			waited = wait_for_end(loop, &before);
		while (waited == -EINTR && !fuse_session_exited(loop->session));
		end_loop(loop);
	}
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(threads);
	if (started == 0)
		return r;
	r = atomic_load(&loop->error);
	return r < 0 ? r : waited < 0;
}

int bid_loop_run(struct fuse_session *session, unsigned busy_poll_us, unsigned n)
{
	struct loop loop;
	int r = open_loop(&loop, session, busy_poll_us);

	if (r < 0)
		return r;
	r = run_threads(&loop, n);
	close_loop(&loop);
	return r;
}
