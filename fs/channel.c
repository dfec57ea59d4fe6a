// SPDX-License-Identifier: LGPL-2.1-or-later
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/log.h"
#include "fs.h"

static bool is_nothing(ssize_t n)
{
	return n < 0 && errno == EAGAIN;
}

/*
 * Whether the next request wakes one of those who sleep, which is off again once it has. If there is one already, that counts. The
 * end of the connection always wakes.
 */
static void set_alarm(const struct bid_channel *channel, int fd, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN | EPOLLONESHOT : EPOLLONESHOT };
	int saved = errno;

	if (epoll_ctl(channel->epoll, EPOLL_CTL_MOD, fd, &event) < 0)
		bid_debug("%s: no thread will be woken for a request", strerror(errno));
	errno = saved;
}

/* So long nobody looks, where others want the processor, and keep it for longer than who asks does between two requests. */
#define REST_NS	 INT64_C(100000000)
#define SLICE_NS INT64_C(1000000)

/*
 * As read(2) that does not block, after a while at most. Nobody else need be woken for what comes meanwhile. Where others keep the
 * processor that is left to them, looking is waiting for them, and to be woken is faster.
 */
static ssize_t look(struct bid_channel *channel, int fd, void *buffer, size_t size)
{
	int64_t now = bid_clock_ns(), end = now + channel->look_us * INT64_C(1000), last;
	ssize_t n;

	if (now < channel->rest_until) {
		errno = EAGAIN;
		return -1;
	}
	set_alarm(channel, fd, false);
	do {
		last = now;
		/* whoever is to ask may wait for this processor */
		sched_yield();
		n = read(fd, buffer, size);
		now = bid_clock_ns();
	} while (is_nothing(n) && now < end);
	if (now - last > SLICE_NS)
		channel->rest_until = now + REST_NS;
	set_alarm(channel, fd, true);
	return n;
}

/*
 * While nobody looks the alarm is on, or a thread that it has just woken is about to set it. So a request never waits for a thread
 * that is at work as long as another one sleeps.
 */
static ssize_t read_request(int fd, void *buffer, size_t size, void *userdata)
{
	struct bid_channel *channel = &((struct bid_fs *)userdata)->channel;
	struct epoll_event event;
	ssize_t n = read(fd, buffer, size);

	/* a thread that is cancelled in here leaves nothing that the others would wait for: all are */
	while (is_nothing(n)) {
		if (!atomic_exchange(&channel->looking, true)) {
			n = look(channel, fd, buffer, size);
			atomic_store(&channel->looking, false);
			if (!is_nothing(n))
				break;
		}
		if (epoll_wait(channel->epoll, &event, 1, -1) < 0)
			return -1;
		n = read(fd, buffer, size);
		set_alarm(channel, fd, true);
	}
	return n;
}

/* The first answer of a session is the one to FUSE_INIT: the kernel sends nothing else before it. */
static ssize_t write_answer(int fd, struct iovec *iov, int count, void *userdata)
{
	struct bid_channel *channel = &((struct bid_fs *)userdata)->channel;

	if (!channel->greeted) {
		channel->greeted = true;
		bid_channel_greet(iov, count);
	}
	return writev(fd, iov, count);
}

/* From now on reads of the device return at once, and whoever sleeps does so in epoll_wait(2). */
static int poll_for(struct bid_channel *channel, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
	int flags = fcntl(fd, F_GETFL);

	channel->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (channel->epoll < 0 || epoll_ctl(channel->epoll, EPOLL_CTL_ADD, fd, &event) < 0 || flags < 0 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int bid_channel_init(struct bid_channel *channel, struct fuse_session *session, unsigned look_us)
{
	static const struct fuse_custom_io io = { .read = read_request, .writev = write_answer };
	int r;

	*channel = BID_CHANNEL_NONE;
	/* on one processor, whoever is to ask cannot do so while we look */
	if (look_us > 0 && bid_cpus() > 1) {
		channel->look_us = look_us;
		r = poll_for(channel, fuse_session_fd(session));
		if (r < 0) {
			bid_warning("%s: threads sleep after each request", strerror(-r));
			bid_channel_release(channel);
		}
	}
	return bid_channel_use(session, &io);
}

void bid_channel_release(struct bid_channel *channel)
{
	if (channel->epoll >= 0)
		close(channel->epoll);
	channel->epoll = -1;
}
