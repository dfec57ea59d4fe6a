/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_CTL_SIZE_H
#define BID_CTL_SIZE_H

#include <stdint.h>

/* Bytes from "1048576", "1024K", "1M": binary units K, M, G and T, of one letter. At least 1. Returns 0 or -EINVAL. */
int ctl_parse_size(const char *text, uint64_t *ret_size);

#endif
