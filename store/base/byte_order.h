/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of a file, in the byte order of the machine that wrote it. They may be unaligned. */
#ifndef BID_BASE_BYTE_ORDER_H
#define BID_BASE_BYTE_ORDER_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t bid_load16(bool big, const uint8_t *data)
{
	uint16_t value;

	memcpy(&value, data, sizeof(value));
	return big ? be16toh(value) : le16toh(value);
}

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
