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

/* Returns less than 0, 0 or more, as @one is before, at or after @other. */
static inline int bid_compare_times(const struct timespec *one, const struct timespec *other)
{
	if (one->tv_sec != other->tv_sec)
		return one->tv_sec < other->tv_sec ? -1 : 1;
	return (one->tv_nsec > other->tv_nsec) - (one->tv_nsec < other->tv_nsec);
}

#endif
