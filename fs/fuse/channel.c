// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/log.h"

/*
 * Whether the next request wakes one of those who sleep, which is off again once it has. If there is one already, that counts. The
 * end of the connection always wakes.
 */
static void set_alarm(const struct bid_channel *channel, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN | EPOLLONESHOT : EPOLLONESHOT };

	if (epoll_ctl(channel->epoll, EPOLL_CTL_MOD, fuse_session_fd(channel->session), &event) < 0)
		bid_debug("%s: no thread will be woken for a request", strerror(errno));
}

/* So long nobody looks, where others want the processor, and keep it for longer than who asks does between two requests. */
#define REST_NS	 INT64_C(100000000)
#define SLICE_NS INT64_C(1000000)

/*
 * Receive without sleeping, but for a while. Nobody else need be woken for what comes meanwhile. Where others keep the processor
 * that is left to them, looking is waiting for them, and to be woken is faster.
 */
static int look(struct bid_channel *channel, struct fuse_buf *buffer)
{
	int64_t now = bid_clock_ns(), end = now + channel->look_us * INT64_C(1000), last;
	int n;

	if (now < channel->rest_until)
		return -EAGAIN;
	set_alarm(channel, false);
	do {
		last = now;
		/* whoever is to ask may wait for this processor */
		sched_yield();
		n = fuse_session_receive_buf(channel->session, buffer);
		now = bid_clock_ns();
	} while (n == -EAGAIN && now < end);
	if (now - last > SLICE_NS)
		channel->rest_until = now + REST_NS;
	set_alarm(channel, true);
	return n;
}

/*
 * While nobody looks the alarm is on, or a thread that it has just woken is about to set it. So a request never waits for a thread
 * that is at work as long as another one sleeps.
 */
int bid_channel_receive(struct bid_channel *channel, struct fuse_buf *buffer)
{
	struct epoll_event event;
	int n = -EAGAIN;

	/* who answers may end the session, too */
	if (fuse_session_exited(channel->session))
		return 0;
	/* where nobody looks, it is not looked either whether there is one by chance */
	if (channel->look_us > 0)
		n = fuse_session_receive_buf(channel->session, buffer);
	while (n == -EAGAIN || n == -EINTR) {
		if (channel->look_us > 0 && !atomic_exchange(&channel->looking, true)) {
			n = look(channel, buffer);
			atomic_store(&channel->looking, false);
			if (n != -EAGAIN)
				continue;
		}
		if (epoll_wait(channel->epoll, &event, 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (fuse_session_exited(channel->session))
			return 0;
		n = fuse_session_receive_buf(channel->session, buffer);
		set_alarm(channel, true);
	}
	return n;
}

void bid_channel_end(struct bid_channel *channel)
{
	if (write(channel->end, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		bid_debug("%s: the end of the session was not told", strerror(errno));
}

int bid_channel_wait(struct bid_channel *channel, const sigset_t *unblocked)
{
	struct pollfd end = { .fd = channel->end, .events = POLLIN };

	return ppoll(&end, 1, NULL, unblocked) < 0 ? -errno : 0;
}

int bid_channel_init(struct bid_channel *channel, struct fuse_session *session, unsigned look_us)
{
	struct epoll_event request = { .events = EPOLLIN | EPOLLONESHOT }, end = { .events = EPOLLIN };
	int fd = fuse_session_fd(session), flags = fcntl(fd, F_GETFL);

	*channel = BID_CHANNEL_NONE;
	channel->session = session;
	/* on one processor, whoever is to ask cannot do so while we look */
	channel->look_us = bid_cpus() > 1 ? look_us : 0;
	channel->epoll = epoll_create1(EPOLL_CLOEXEC);
	channel->end = eventfd(0, EFD_CLOEXEC);
	/* reads of the device return at once from now on, and whoever sleeps does so in epoll_wait(2) */
	if (channel->epoll < 0 || channel->end < 0 || epoll_ctl(channel->epoll, EPOLL_CTL_ADD, fd, &request) < 0 ||
	    epoll_ctl(channel->epoll, EPOLL_CTL_ADD, channel->end, &end) < 0 || flags < 0 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		int r = -errno;

		bid_channel_release(channel);
		return r;
	}
	return 0;
}

void bid_channel_release(struct bid_channel *channel)
{
	if (channel->epoll >= 0)
		close(channel->epoll);
	if (channel->end >= 0)
		close(channel->end);
	channel->epoll = channel->end = -1;
}
