// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/request_loop.h"

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

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "fuse/ops.h"

struct request_loop {
	struct bid_fs *fs; /* borrowed */
	struct fuse_session *session; /* that of @fs */
	int epoll; /* wakes one thread for a request, all at the end; owned */
	int end; /* eventfd, readable at the end of the session; owned */
	unsigned busy_poll_us; /* 0 for none */
	atomic_bool polling; /* one thread polls */
	int64_t no_poll_until; /* bid_clock_ns(); owned by the polling thread */
	atomic_int error; /* result of a thread: 0 or a negative errno */
};

/*
 * Let the next request wake one sleeping thread. EPOLLONESHOT disarms itself. A request in the queue counts, and the end of the
 * connection always wakes.
 */
static void arm_epoll(const struct request_loop *loop, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN | EPOLLONESHOT : EPOLLONESHOT };

	if (epoll_ctl(loop->epoll, EPOLL_CTL_MOD, fuse_session_fd(loop->session), &event) < 0)
		bid_debug("%s: no thread will be woken for a request", strerror(errno));
}

/* A polling thread that lost the processor for longer than a SLICE does not poll for a PAUSE: waking is faster then. */
#define PAUSE_NS INT64_C(100000000)
#define SLICE_NS INT64_C(1000000)

/* Receive a request by polling, with the epoll disarmed. -EAGAIN after busy_poll_us. */
static int poll_device(struct request_loop *loop, struct fuse_buf *buffer)
{
	int64_t now = bid_clock_ns(), end = now + loop->busy_poll_us * INT64_C(1000), last;
	int n;

	if (now < loop->no_poll_until)
		return -EAGAIN;
	arm_epoll(loop, false);
	do {
		last = now;
		/* the next client may wait for this processor */
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
 * Receive a request. Returns its size, 0 at the end of the session, or a negative errno.
 *
 * Without a polling thread the epoll is armed, or a thread that just woke is about to arm it. Therefore no request waits for a busy
 * thread while another sleeps.
 */
static int receive_request(struct request_loop *loop, struct fuse_buf *buffer)
{
	struct epoll_event event;
	int n = -EAGAIN;

	/* a handler may end the session */
	if (fuse_session_exited(loop->session))
		return 0;
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

/* Wake all threads, now and later, for the end of the session. */
static void end_request_loop(struct request_loop *loop)
{
	if (write(loop->end, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		bid_debug("%s: the threads may miss the end of the session", strerror(errno));
}

/* Wait for the end of the session or for a signal of @unblocked. Returns 0 or -EINTR. */
static int wait_for_end(const struct request_loop *loop, const sigset_t *unblocked)
{
	struct pollfd end = { .fd = loop->end, .events = POLLIN };
	int n;

	while ((n = ppoll(&end, 1, &(struct timespec){ .tv_sec = 60 }, unblocked)) == 0)
		bid_fd_cache_drop(loop->fs->fd_cache, NULL);
	return n < 0 ? -errno : 0;
}

/* Prepare @loop. The caller closes the descriptors, also after an error. */
static int open_request_loop(struct request_loop *loop)
{
	struct epoll_event request = { .events = EPOLLIN | EPOLLONESHOT }, end = { .events = EPOLLIN };
	int fd = fuse_session_fd(loop->session), flags = fcntl(fd, F_GETFL);

	/* on one processor a client cannot run while a thread polls */
	loop->busy_poll_us = bid_cpus() > 1 ? loop->fs->options->busy_poll_us : 0;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->end = eventfd(0, EFD_CLOEXEC);
	/* reads of the device do not block from now on */
	if (loop->epoll < 0 || loop->end < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &request) < 0 ||
	    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->end, &end) < 0 || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static void *serve_requests(void *user)
{
	struct request_loop *loop = user;
	struct fuse_buf request = { 0 };
	int n;

	while ((n = receive_request(loop, &request)) > 0)
		fuse_session_process_buf(loop->session, &request);
	free(request.mem);
	if (n < 0)
		atomic_store(&loop->error, n);
	fuse_session_exit(loop->session);
	end_request_loop(loop);
	return NULL;
}

/* Run @n threads until the session is over. */
static int run_threads(struct request_loop *loop, unsigned n)
{
	pthread_t *threads = calloc(n, sizeof(*threads));
	sigset_t all, before;
	unsigned started = 0;
	int r = threads ? 0 : -ENOMEM, waited = 0;

	/* signals arrive in wait_for_end() alone */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (r == 0 && started < n) {
		r = bid_thread_start(&threads[started], "bid-fuse", serve_requests, loop);
		started += r == 0;
	}
	if (r < 0 && started > 0)
		bid_warning("%s: only %u of %u threads serve requests", bid_strerror(r), started, n);
	if (started > 0) {
		do
			waited = wait_for_end(loop, &before);
		while (waited == -EINTR && !fuse_session_exited(loop->session));
		end_request_loop(loop);
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

int bid_request_loop_run(struct bid_fs *fs)
{
	struct request_loop loop = { .fs = fs, .session = fs->session };
	int r;

	bid_fix_init_reply(fs->session);
	r = open_request_loop(&loop);
	if (r == 0)
		r = run_threads(&loop, fs->options->max_threads);
	if (r < 0)
		bid_error("%s: cannot serve the mount", bid_strerror(r));
	bid_close(loop.epoll);
	bid_close(loop.end);
	return r;
}
