/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Is an error one of the thing at hand, or of the machine, so that whatever is tried next meets it, too? */
#ifndef BID_BASE_TROUBLE_H
#define BID_BASE_TROUBLE_H

#include <errno.h>
#include <stdbool.h>

/* @error is a negative errno, or 0. */
static inline bool bid_is_trouble(int error)
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

/* Is a file there that is not what its name says, or cannot be unpacked, so that the right one has to come from elsewhere? */
static inline bool bid_is_unusable(int error)
{
	return error == -EBADMSG || error == -EFBIG || error == -EOPNOTSUPP;
}

#endif
