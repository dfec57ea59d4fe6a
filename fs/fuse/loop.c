// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <bid/error.h>

#include "base/log.h"
#include "base/thread.h"

struct loop {
	struct bid_channel *channel; /* borrowed */
	atomic_int error; /* what a thread ended for: 0 or a negative errno */
};

static void *answer(void *user)
{
	struct loop *loop = user;
	struct fuse_session *session = loop->channel->session;
	struct fuse_buf request = { 0 };
	int n;

	while ((n = bid_channel_receive(loop->channel, &request)) > 0)
		fuse_session_process_buf(session, &request);
	free(request.mem);
	if (n < 0)
		atomic_store(&loop->error, n);
	fuse_session_exit(session);
	bid_channel_end(loop->channel);
	return NULL;
}

int bid_loop_run(struct bid_channel *channel, unsigned n)
{
	struct loop loop = { .channel = channel };
	pthread_t *threads = calloc(n, sizeof(*threads));
	sigset_t all, before;
	unsigned started = 0;
	int r = threads ? 0 : -ENOMEM, waited = 0;

	/* they come while it waits, and at no other time */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (r == 0 && started < n) {
		r = bid_thread_start(&threads[started], "fuse", answer, &loop);
		started += r == 0;
	}
	if (r < 0 && started > 0)
		bid_warning("%s: %u of %u threads answer the kernel", bid_strerror(r), started, n);
	if (started > 0) {
		do
			waited = bid_channel_wait(channel, &before);
		while (waited == -EINTR && !fuse_session_exited(channel->session));
		bid_channel_end(channel);
	}
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(threads);
	if (started == 0)
		return r;
	r = atomic_load(&loop.error);
	return r < 0 ? r : waited < 0;
}
