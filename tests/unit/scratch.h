/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs and directories for tests. */
#ifndef BID_TEST_SCRATCH_H
#define BID_TEST_SCRATCH_H

/* Run a program from PATH; its failure fails the test. */
void scratch_run(const char *const argv[]);

/* Remove @path with everything below it. Returns 0 or -1. */
int scratch_remove(const char *path);

/* Copy the directory @from as @to, with times, symbolic links, and files with several names. Returns 0 or -1. */
int scratch_copy(const char *from, const char *to);

#endif
