// SPDX-License-Identifier: LGPL-2.1-or-later
#include "elf_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

#define LENGTH_MAX (64u << 20)

int elf_fixture_open(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail_msg("%s: '%s'", strerror(errno), name);
	return fd;
}

void elf_fixture_read(const char *name, char **ret_data, size_t *ret_len)
{
	bid_auto_fd int fd = elf_fixture_open(name);

	assert_int_equal(bid_read_file(fd, LENGTH_MAX, ret_data, ret_len), 0);
}

void elf_fixture_write(const char *name, const void *data, size_t len)
{
	bid_auto_fd int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(bid_pwrite_full(fd, data, len, 0), 0);
}

int elf_fixture_memory(const void *data, size_t len)
{
	int fd = memfd_create("elf_fixture", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(bid_pwrite_full(fd, data, len, 0), 0);
	return fd;
}

static void build_fixtures(void)
{
	static const char program[] = "int main(int argc, char **argv)\n{\n\treturn argc - 1;\n}\n";
	static const char module[] = "int add(int a, int b)\n{\n\treturn a + b;\n}\n";

	elf_fixture_write("program.c", program, strlen(program));
	elf_fixture_write("module.c", module, strlen(module));
	RUN("cc", "-g", "-Wl,--build-id=0x" ELF_FIXTURE_ID, "-o", "program", "program.c");
	RUN("cc", "-g", "-c", "-o", "module.o", "module.c");
	RUN("ld", "-r", "--build-id=0x" ELF_FIXTURE_ID, "-o", "module.ko", "module.o");
	RUN("gzip", "-k", "module.ko");
	RUN("xz", "-k", "--check=crc32", "module.ko");
	RUN("zstd", "-q", "-k", "module.ko");
}

int elf_fixture_enter(void **state)
{
	const char *parent = getenv("TMPDIR");
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/test-elf-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(path) || chdir(path) < 0)
		return -1;
	*state = strdup(path);
	build_fixtures();
	return *state ? 0 : -1;
}

int elf_fixture_leave(void **state)
{
	int r = chdir("/") < 0 ? -1 : scratch_remove(*state);

	free(*state);
	return r;
}
