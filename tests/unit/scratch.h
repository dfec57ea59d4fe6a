/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tests do with programs and directories of their own. */
#ifndef BID_TEST_SCRATCH_H
#define BID_TEST_SCRATCH_H

/* Run a program, found in PATH; the test fails if it does. */
void scratch_run(const char *const argv[]);

/* Remove @path and all below it. 0 or -1. */
int scratch_remove(const char *path);

/* Copy the directory @from as @to, with times, symbolic links, and files that have several names. 0 or -1. */
int scratch_copy(const char *from, const char *to);

#endif
