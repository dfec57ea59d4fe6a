/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_THREAD_H
#define BID_BASE_THREAD_H

#include <pthread.h>

/*
 * Start a thread with the name @name, of at most 15 characters, and all signals blocked: signals go to the threads of the program.
 * Returns 0 or a negative errno.
 */
int bid_thread_start(pthread_t *ret_thread, const char *name, void *(*body)(void *), void *argument);

/* Initialise @cond for waits until a time of the monotonic clock. */
void bid_cond_init(pthread_cond_t *cond);

#endif
