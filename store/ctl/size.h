/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_CTL_SIZE_H
#define BID_CTL_SIZE_H

#include <stdint.h>

/* Parsed size. One of both fields is 0, and both without the option. */
struct ctl_size {
	uint64_t bytes;
	double percent; /* share of the file system */
};

/*
 * Parse "1048576", "1024K", "1.5GiB" or "10%". The units K, M, G, T and KiB, MiB, GiB, TiB are binary. Returns 0, or -EINVAL for
 * other text and for less than a byte.
 */
int ctl_parse_size(const char *text, struct ctl_size *ret_size);

/* Return @size in bytes, for a file system of @total bytes. */
uint64_t ctl_size_of(const struct ctl_size *size, uint64_t total);

#endif
