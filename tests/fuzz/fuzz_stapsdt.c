// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reader of static probes against its contract:
 *   - for a damaged file the reader returns one of its errors, and writes nothing;
 *   - its output has the format of perf's probe cache, with each event once, and locations inside the given file.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "ctl/probe_file.h"
#include "target.h"

#define INPUT_MAX (1u << 20)
#define PATH_HERE "/usr/bin/app"

static void check_probe(const struct ctl_probe *probe)
{
	require(probe->sdt && probe->n > 0 && ctl_probe_name_len(probe) > strlen("sdt_:"));
	for (size_t i = 0; i < probe->n; i++) {
		const char *place = strstr(probe->definitions[i], " " PATH_HERE ":0x");

		require(strncmp(probe->definitions[i], "p:sdt_", 6) == 0 && place);
		require(strchr(probe->definitions[i], ' ') == place);
		/* sorted, and each once */
		require(i == 0 || strcmp(probe->definitions[i - 1], probe->definitions[i]) < 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	bid_auto_fd int fd = memfd_create("stapsdt", MFD_CLOEXEC);
	char *text = NULL;
	size_t len;
	FILE *out;
	int r;

	if (size > INPUT_MAX)
		return 0;
	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	out = open_memstream(&text, &len);
	require(out);
	r = bid_elf_probes(fd, PATH_HERE, out);
	require(fclose(out) == 0);
	require(r == 0 || r == -ENOEXEC || r == -ENODATA || r == -EBADMSG);
	require((r == 0) == (len > 0));
	require(ctl_probe_file_parse(text, len, &file) == 0);
	for (size_t i = 0; i < file.n; i++)
		check_probe(&file.probes[i]);
	return 0;
}
