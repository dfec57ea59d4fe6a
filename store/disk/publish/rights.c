// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/rights.h"

#include <errno.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "base/world_readable.h"
#include "disk/publish/replace.h"
#include "disk/publish/temp.h"
#include "disk/store.h"

bool bid_rights_given(int fd, const struct stat *st)
{
	if (st->st_mode & (S_ISUID | S_ISGID))
		return true;
	return fgetxattr(fd, "security.capability", NULL, 0) >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
}

int bid_rights_strip(struct bid_store *store, const struct bid_artifact *artifact, int fd, const char *path, mode_t mode)
{
	struct bid_temp temp = BID_TEMP_NONE;
	struct stat st;
	int r = bid_temp_new(store, true, &temp);

	if (r == 0)
		r = bid_copy_file(fd, temp.fd);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0)
		r = bid_set_readers(temp.fd, mode & (bid_rights_given(fd, &st) ? 0444 : 0555), st.st_uid);
	if (r == 0 && fsync(temp.fd) < 0)
		r = -errno;
	if (r == 0)
		r = bid_replace(store, artifact, path, &st, temp.fd);
	bid_temp_release(&temp);
	return r < 0 ? r : 0;
}
