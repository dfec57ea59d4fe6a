// SPDX-License-Identifier: LGPL-2.1-or-later
/* Unpack a core file, stored or from a pipe, into a file with random access. */

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { BLOCK = 64 << 10 }; /* bytes per read */

static void cleanup_archive(struct archive **archive)
{
	archive_read_free(*archive);
}

static int archive_error(struct archive *archive)
{
	int error = archive_errno(archive);

	/* for errors in the data libarchive returns ARCHIVE_ERRNO_MISC or its own errno values; only these are real */
	return error == ENOMEM || error == EIO || error == EISDIR ? -error : -EBADMSG;
}

/* The formats of systemd-coredump(8) and of common tools. Data in another format passes unchanged. */
static int open_archive(struct archive *archive, int fd)
{
	struct archive_entry *entry;

	archive_read_support_filter_zstd(archive);
	archive_read_support_filter_lz4(archive);
	archive_read_support_filter_xz(archive);
	archive_read_support_filter_gzip(archive);
	archive_read_support_filter_bzip2(archive);
	if (archive_read_support_format_raw(archive) != ARCHIVE_OK || archive_read_open_fd(archive, fd, BLOCK) != ARCHIVE_OK ||
	    archive_read_next_header(archive, &entry) != ARCHIVE_OK)
		return archive_error(archive);
	return 0;
}

static bool is_zero(const char *data, size_t len)
{
	return len == 0 || (data[0] == '\0' && memcmp(data, data + 1, len - 1) == 0);
}

/* Write pages of zeros as holes: memory is mostly zeros. */
static int write_sparse(int fd, const char *data, size_t len, off_t at)
{
	enum { PAGE = 4096 };
	int r = 0;

	while (r == 0 && len > 0) {
		size_t n = len < PAGE ? len : PAGE;

		if (!is_zero(data, n))
			r = bid_pwrite_full(fd, data, n, at);
		data += n;
		at += (off_t)n;
		len -= n;
	}
	return r;
}

int bid_elf_core_unpack(int fd, int to)
{
	bid_cleanup(cleanup_archive) struct archive *archive = archive_read_new();
	off_t end = 0;
	int r = archive ? open_archive(archive, fd) : -ENOMEM;

	while (r == 0) {
		const void *data;
		la_int64_t offset;
		size_t len;
		int status = archive_read_data_block(archive, &data, &len, &offset);

		if (status == ARCHIVE_EOF)
			return ftruncate(to, end) < 0 ? -errno : 0;
		if (status != ARCHIVE_OK)
			return archive_error(archive);
		r = write_sparse(to, data, len, end);
		end += (off_t)len;
	}
	return r;
}
