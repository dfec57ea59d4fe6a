/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* This process: its threads, CPUs, standard descriptors, and the service manager that started it. */
#ifndef BID_BASE_PROCESS_H
#define BID_BASE_PROCESS_H

#include <pthread.h>

/*
 * Start a thread with the name @name, of at most 15 characters, and all signals blocked: signals go to the threads of the program.
 * Returns 0 or a negative errno.
 */
int bid_thread_start(pthread_t *ret_thread, const char *name, void *(*body)(void *), void *argument);

/* Initialise @cond for waits until a time of the monotonic clock. */
void bid_cond_init(pthread_cond_t *cond);

/* The default number of threads: the CPUs that this process may use. */
unsigned bid_cpus(void);

/*
 * Occupy those of the descriptors 0, 1 and 2 that the caller has closed, before anything else is opened: a file of the store that
 * got such a number would be taken for the terminal, and written to. Reads and writes there fail with EBADF, as before. Returns 0,
 * or as open(2).
 */
int bid_std_fds_occupy(void);

/*
 * Connect to the service manager that started this process and waits for it: sd_notify(3). Returns a descriptor of the caller's, or
 * -1 if there is none, or after a warning. It is written by a process that may open no socket any more.
 */
int bid_notify_open(void);

/* Send @state, such as "READY=1"; without effect if @fd is -1. */
void bid_notify(int fd, const char *state);

#endif
