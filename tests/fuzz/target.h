/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Common head of the fuzz targets. */
#ifndef BID_TESTS_TARGET_H
#define BID_TESTS_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer's name for it; replay.c calls it, too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(3), the checks stay in every build type. */
#define require(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

#endif
