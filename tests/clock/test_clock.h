/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A clock that a test owns. Linked into a unit test, or loaded into a program by LD_PRELOAD, it replaces what the C library has:
 * clock_gettime(2), time(2), waits for a condition with a deadline, and poll(2). The time is the machine's plus an offset that only
 * a test moves; who waits for a deadline notices that within milliseconds.
 *
 * The offset is that of one process; with BID_TEST_CLOCK=FILE, of all processes that name the same file of 8 bytes, which is the
 * offset in nanoseconds.
 */
#ifndef BID_TEST_CLOCK_H
#define BID_TEST_CLOCK_H

#include <stdint.h>

/* Move the clock forward. From any thread. */
void test_clock_advance_ms(int64_t ms);

#endif
