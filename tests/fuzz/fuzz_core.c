// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reader of core files against its contract:
 *   - it reports a damaged file by one of its four errors;
 *   - each name is a text, and each id has 1 to 64 consecutive bytes of the file.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "target.h"

struct fuzz_input {
	const uint8_t *data;
	size_t size;
	size_t files;
};

static int take(void *user, const struct bid_elf_core_file *file)
{
	struct fuzz_input *input = user;

	input->files++;
	require(file->id.len <= BID_ID_MAX && strlen(file->path) <= input->size);
	require(memmem(input->data, input->size, file->path, strlen(file->path) + 1));
	require(file->id.len == 0 || memmem(input->data, input->size, file->id.bytes, file->id.len));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bid_auto_fd int fd = memfd_create("core", MFD_CLOEXEC);
	struct fuzz_input input = { .data = data, .size = size };
	int r;

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	r = bid_elf_core_each(fd, take, &input);
	require(r == 0 || r == -ENOEXEC || r == -EINVAL || r == -ENODATA || r == -EBADMSG);
	require(r == 0 || input.files == 0);
	return 0;
}
