/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every fuzz target begins with. */
#ifndef BID_TESTS_TARGET_H
#define BID_TESTS_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer's name for it; replay.c calls it, too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(3): the checks stay whatever the build type. */
#define require(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

#endif
