/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of a recording, in the byte order of its machine. They may be unaligned: records have odd sizes. */
#ifndef BID_PERFDATA_LOAD_H
#define BID_PERFDATA_LOAD_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bid_load32(bool big, const uint8_t *data)
{
	uint32_t value;

	memcpy(&value, data, sizeof(value));
	return big ? be32toh(value) : le32toh(value);
}

static inline uint64_t bid_load64(bool big, const uint8_t *data)
{
	uint64_t value;

	memcpy(&value, data, sizeof(value));
	return big ? be64toh(value) : le64toh(value);
}

#endif
