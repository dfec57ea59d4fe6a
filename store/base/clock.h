/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_CLOCK_H
#define BID_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of the monotonic clock. */
static inline int64_t bid_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Its milliseconds. */
static inline int64_t bid_clock_ms(void)
{
	return bid_clock_ns() / 1000000;
}

/* Its seconds, from the coarse clock: some ms late. */
static inline int64_t bid_clock_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec;
}

#endif
