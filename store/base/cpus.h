/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_CPUS_H
#define BID_BASE_CPUS_H

#include <sched.h>

/* The default number of threads: the CPUs that this process may use. */
static inline unsigned bid_cpus(void)
{
	cpu_set_t cpus;

	/* more than 1024 CPUs do not fit, and are more than anything here can use */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return 4;
	return (unsigned)CPU_COUNT(&cpus);
}

#endif
