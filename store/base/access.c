// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/access.h"

#include <errno.h>
#include <sys/xattr.h>

int bid_fstat(int fd, struct stat *ret_st)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_mode & (S_IRWXG | S_IRWXO) && fgetxattr(fd, "system.posix_acl_access", NULL, 0) > 0)
		st.st_mode &= ~(mode_t)(S_IRWXG | S_IRWXO);
	*ret_st = st;
	return 0;
}
