// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reading the bytes of an untrusted archive. */
#include <archive.h>
#include <errno.h>

#include "archive/unarchive.h"

enum { BOMB_RATIO = 250 };

#define BOMB_MIN (UINT64_C(256) << 20)

int bid_unpack_error(struct archive *archive)
{
	switch (archive_errno(archive)) {
	case ENOMEM:
	case EIO:
	case EISDIR:
	case EBADF:
		return -archive_errno(archive);
	default:
		return -EBADMSG;
	}
}

/* A few bytes that unpack to many could fill a disk, or take forever. */
int bid_unpack_count(struct bid_unpack *unpack, size_t len)
{
	la_int64_t packed = archive_filter_bytes(unpack->file, -1);

	unpack->unpacked += len;
	return unpack->unpacked > BOMB_MIN && packed > 0 && unpack->unpacked / BOMB_RATIO > (uint64_t)packed ? -EFBIG : 0;
}

ssize_t bid_unpack_read(struct bid_unpack *unpack, void *buffer, size_t len)
{
	la_ssize_t n = archive_read_data(unpack->archive, buffer, len);
	int r;

	if (n < 0)
		return bid_unpack_error(unpack->archive);
	r = bid_unpack_count(unpack, (size_t)n);
	return r < 0 ? r : (ssize_t)n;
}
