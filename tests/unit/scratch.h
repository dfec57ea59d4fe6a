/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tests do with programs and directories of their own. */
#ifndef BID_TEST_SCRATCH_H
#define BID_TEST_SCRATCH_H

/* Run a program, found in PATH; the test fails if it does. */
void scratch_run(const char *const argv[]);

/* Remove @path and all below it. 0 or -1. */
int scratch_remove(const char *path);

#endif
