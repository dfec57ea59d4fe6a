// SPDX-License-Identifier: LGPL-2.1-or-later
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fs.h"

enum { NAP_US = 500 };

static bool is_nothing(ssize_t n)
{
	return n < 0 && errno == EAGAIN;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* As read(2) that does not block, after so long at most. */
static ssize_t look(const struct bid_channel *channel, int fd, void *buffer, size_t size)
{
	uint64_t end = now_ns() + channel->look_us * UINT64_C(1000);
	ssize_t n;

	do {
		/* whoever is to ask may wait for this processor */
		sched_yield();
		n = read(fd, buffer, size);
	} while (is_nothing(n) && now_ns() < end);
	return n;
}

static ssize_t read_request(int fd, void *buffer, size_t size, void *userdata)
{
	struct bid_channel *channel = &((struct bid_fs *)userdata)->channel;
	struct timespec nap = { .tv_nsec = channel->nap_us * 1000L };
	struct epoll_event event;
	ssize_t n = read(fd, buffer, size);

	/* a thread that is cancelled in here leaves nothing that the others would wait for: all are */
	while (is_nothing(n)) {
		if (atomic_exchange(&channel->looking, true)) {
			nanosleep(&nap, NULL);
			n = read(fd, buffer, size);
			continue;
		}
		n = look(channel, fd, buffer, size);
		atomic_store(&channel->looking, false);
		if (!is_nothing(n))
			return n;
		if (epoll_wait(channel->epoll, &event, 1, -1) < 0)
			return -1;
		n = read(fd, buffer, size);
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

/* Reads of the device return at once from now on, and who sleeps does so in epoll_wait(2), which wakes one thread for a request. */
static int poll_for(struct bid_channel *channel, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int flags = fcntl(fd, F_GETFL);

	channel->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (channel->epoll < 0 || epoll_ctl(channel->epoll, EPOLL_CTL_ADD, fd, &event) < 0 || flags < 0 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int bid_channel_init(struct bid_channel *channel, struct fuse_session *session, unsigned look_us, unsigned threads)
{
	static const struct fuse_custom_io io = { .read = read_request, .writev = write_answer };
	int r = 0;

	*channel = BID_CHANNEL_NONE;
	/* on one processor, whoever is to ask cannot do so while we look */
	if (look_us > 0 && sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		channel->look_us = look_us;
		channel->nap_us = NAP_US * (threads > 1 ? threads - 1 : 1);
		r = poll_for(channel, fuse_session_fd(session));
	}
	return r < 0 ? r : bid_channel_use(session, &io);
}

void bid_channel_release(struct bid_channel *channel)
{
	if (channel->epoll >= 0)
		close(channel->epoll);
	channel->epoll = -1;
}
