// SPDX-License-Identifier: LGPL-2.1-or-later
/* .gnu_debuglink: gdb's manual, "Debugging Information in Separate Files". */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "api/elf.h"
#include "base/byte_order.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { CHUNK = 128 << 10 };

int bid_elf_debuglink(int fd, struct bid_elf_debuglink *ret_link)
{
	uint8_t data[NAME_MAX + 1 + sizeof(uint32_t)];
	struct bid_elf_section section;
	size_t name_len, crc_at;
	ssize_t n;
	int r;

	r = bid_elf_find_section(fd, ".gnu_debuglink", &section);
	if (r < 0)
		return r;
	n = bid_pread_full(fd, data, section.size < sizeof(data) ? section.size : sizeof(data), (off_t)section.offset);
	if (n < 0)
		return (int)n;
	/* the name, its NUL, zeros up to a multiple of 4, the checksum */
	name_len = strnlen((const char *)data, (size_t)n);
	crc_at = (name_len + sizeof(uint32_t)) & ~(sizeof(uint32_t) - 1);
	if (name_len == 0 || name_len > NAME_MAX || crc_at + sizeof(uint32_t) > (size_t)n || memchr(data, '/', name_len))
		return -ENOENT;
	memcpy(ret_link->name, data, name_len + 1);
	ret_link->crc = bid_load32(section.big, data + crc_at);
	return 0;
}

/* The checksum of @n zeros, by doubling. */
static uLong checksum_zeros(off_t n)
{
	uLong crc = 0, power = crc32_z(0, (const Bytef *)"", 1);

	for (off_t len = 1; n > 0; n >>= 1, len *= 2) {
		if (n & 1)
			crc = crc32_combine(crc, power, len);
		power = n > 1 ? crc32_combine(power, power, len) : power;
	}
	return crc;
}

int bid_elf_checksum(int fd, uint32_t *ret_crc)
{
	bid_auto_free uint8_t *chunk = malloc(CHUNK);
	uLong crc = 0;
	off_t at = 0;
	struct stat st;
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	if (fstat(fd, &st) < 0)
		return -errno;
	do {
		/* a hole of many TiB takes no disk */
		off_t data = bid_next_data(fd, at, st.st_size);

		crc = crc32_combine(crc, checksum_zeros(data - at), data - at);
		n = bid_pread_full(fd, chunk, CHUNK, data);
		if (n > 0)
			crc = crc32_z(crc, chunk, (size_t)n);
		at = data + n;
	} while (n > 0);
	if (n < 0)
		return (int)n;
	*ret_crc = (uint32_t)crc;
	return 0;
}
