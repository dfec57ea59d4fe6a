// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"

/* Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header" */
enum {
	SETUP_SECTS = 0x1f1, /* sectors of 512 bytes after the boot sector; 0 means 4 */
	MAGIC = 0x202, /* "HdrS" */
	VERSION = 0x206,
	PAYLOAD_OFFSET = 0x248, /* from the beginning of the protected-mode code, right after the setup code */
	PAYLOAD_LENGTH = 0x24c,
	HEADER_SIZE = 0x250,
	SECTOR = 512,
	WITH_PAYLOAD = 0x208, /* first version with these fields */
};

static uint32_t le32_at(const uint8_t *header, size_t at)
{
	uint32_t value;

	memcpy(&value, header + at, sizeof(value));
	return le32toh(value);
}

int bid_kernel_payload(int fd, struct bid_packed *ret_packed)
{
	uint8_t header[HEADER_SIZE];
	struct bid_packed packed;
	struct stat st;
	unsigned setup;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	n = bid_pread_full(fd, header, sizeof(header), 0);
	if (n < 0)
		return (int)n;
	if (n < HEADER_SIZE || memcmp(header + MAGIC, "HdrS", 4) != 0 ||
	    (unsigned)(header[VERSION] | header[VERSION + 1] << 8) < WITH_PAYLOAD) {
		*ret_packed = (struct bid_packed){ .end = st.st_size };
		return 0;
	}
	setup = header[SETUP_SECTS] ? header[SETUP_SECTS] : 4;
	packed.offset = (off_t)(setup + 1) * SECTOR + le32_at(header, PAYLOAD_OFFSET);
	packed.end = packed.offset + le32_at(header, PAYLOAD_LENGTH);
	if (packed.end > st.st_size || packed.end - packed.offset < 8)
		return -EBADMSG;
	*ret_packed = packed;
	return 1;
}
