// SPDX-License-Identifier: LGPL-2.1-or-later
#include <bid/error.h>

#include <errno.h>
#include <string.h>

const char *bid_strerror(int error)
{
	switch (error < 0 ? -error : error) {
	case ENOENT:
		return "no such artifact";
	case EINPROGRESS:
		return "not here; a server may have it";
	case EHOSTUNREACH:
		return "not here, and not every server answered";
	case ETIMEDOUT:
		return "not here yet; the download goes on";
	case EBADMSG:
		return "the content does not carry this build-id";
	case ENOTUNIQ:
		return "another build is stored under the first 20 bytes of its build-id";
	case EFBIG:
		return "larger than the limit";
	case ENOEXEC:
		return "not an ELF file";
	case ENODATA:
		return "no build-id in it";
	case EINTR:
		return "interrupted";
	default:
		return strerror(error < 0 ? -error : error);
	}
}
