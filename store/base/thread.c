// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/thread.h"

#include <signal.h>

int bid_thread_start(pthread_t *ret_thread, const char *name, void *(*body)(void *), void *argument)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (r)
		return -r;
	r = pthread_create(&thread, NULL, body, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return -r;
	pthread_setname_np(thread, name);
	*ret_thread = thread;
	return 0;
}
