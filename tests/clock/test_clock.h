/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A clock owned by a test. Linked into a unit test, or loaded into a program by LD_PRELOAD, it replaces functions of the C library:
 * clock_gettime(2), time(2), waits for a condition with a deadline, poll(2) and ppoll(2). The time is the machine's plus an offset
 * that only a test moves; a thread that waits for a deadline sees the move within milliseconds.
 *
 * The offset belongs to one process. With BID_TEST_CLOCK=FILE, all processes with the same FILE share it: 8 bytes, the offset in
 * nanoseconds.
 */
#ifndef BID_TEST_CLOCK_H
#define BID_TEST_CLOCK_H

#include <stdint.h>

/* Move the clock forward. From any thread. */
void test_clock_advance_ms(int64_t ms);

#endif
