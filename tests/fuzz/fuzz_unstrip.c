// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An ELF file and a debug file to put together. The first two bytes of an input are the length of the ELF file, little endian; the
 * debug file follows. For every input:
 *   - the error is a documented one;
 *   - the result is not larger than both files, their alignment and the section headers;
 *   - the result of two whole files is a whole file.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "target.h"

enum { PER_SECTION = 4096 + 64 };

static int make_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz_unstrip", MFD_CLOEXEC);

	require(fd >= 0 && bid_pwrite_full(fd, data, size, 0) == 0);
	return fd;
}

static bool is_documented(int r)
{
	return r == 0 || r == -EBADMSG || r == -EOPNOTSUPP || r == -ENOEXEC;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = size < 2 ? 0 : data[0] | (size_t)data[1] << 8;
	bid_auto_fd int elf = -1, debug = -1, merged = -1;
	struct bid_elf_info info;
	struct stat st;
	int r;

	if (size < 2 || len > size - 2)
		return 0;
	elf = make_file(data + 2, len);
	debug = make_file(data + 2 + len, size - 2 - len);
	merged = make_file(NULL, 0);
	r = bid_elf_unstrip(elf, debug, UINT64_MAX, merged);
	require(is_documented(r));
	require(fstat(merged, &st) == 0);
	/* a section header is 40 bytes at least */
	require((uint64_t)st.st_size <= size + (size / 40 + 2) * PER_SECTION);
	/* the caller refuses a result that it cannot examine */
	if (r == 0)
		require(is_documented(bid_elf_examine(merged, &info)));
	return 0;
}
