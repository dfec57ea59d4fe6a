// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/thread.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

int bid_thread_start(pthread_t *ret_thread, const char *name, void *(*body)(void *), void *argument)
{
	sigset_t all, before;
	pthread_t thread;
	char own[16];
	int r;

	sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (r)
		return -r;
	/* it inherits the name, too: to give another thread one is to write to /proc, which a sandboxed program cannot do */
	prctl(PR_GET_NAME, own);
	prctl(PR_SET_NAME, name);
	r = pthread_create(&thread, NULL, body, argument);
	prctl(PR_SET_NAME, own);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return -r;
	*ret_thread = thread;
	return 0;
}

void bid_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}
