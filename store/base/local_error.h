/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Classes of errors: of one file, or of the machine, where the next file meets them too. */
#ifndef BID_BASE_LOCAL_ERROR_H
#define BID_BASE_LOCAL_ERROR_H

#include <errno.h>
#include <stdbool.h>

/* @error is a negative errno, or 0. */
static inline bool bid_is_local_error(int error)
{
	switch (error) {
	case -ENOSPC:
	case -EDQUOT:
	case -EROFS:
	case -EIO:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return true;
	default:
		return false;
	}
}

/* Does @error mean a wrong stored file, or one that cannot be unpacked, so that another server must have the right one? */
static inline bool bid_is_unusable(int error)
{
	return error == -EBADMSG || error == -EFBIG || error == -EOPNOTSUPP;
}

#endif
