// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a mount is told while it serves: by setting an attribute of ".bidfs". Not of an id's own directory, because the kernel keeps
 * that locked meanwhile, and could be told of no name in it before the caller looks for one. The kernel itself lets only the owner
 * and root do so, by the directory's mode, and nobody in a mount that is read-only.
 */
#include "ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "refresh.h"

static int refresh(struct bid_fs *fs, const char *value)
{
	return bid_refresh(fs, value, false);
}

static int accept_other(struct bid_fs *fs, const char *value)
{
	return bid_refresh(fs, value, true);
}

static int go_offline(struct bid_fs *fs, const char *value)
{
	bool offline = strcmp(value, "1") == 0;

	if (!offline && strcmp(value, "0") != 0)
		return -EINVAL;
	if (offline != bid_broker_is_offline(fs->broker))
		bid_info(offline ? "no server is asked any more: told to be offline" : "servers are asked again");
	bid_broker_set_offline(fs->broker, offline);
	return 0;
}

static const struct {
	const char *name;
	int (*fn)(struct bid_fs *fs, const char *value);
} told[] = {
	{ "user.bidfs.refresh", refresh },
	{ "user.bidfs.accept", accept_other },
	{ "user.bidfs.offline", go_offline },
};

static int tell(struct bid_fs *fs, const char *name, const char *value, size_t size)
{
	bid_auto_free char *text = strndup(value, size);

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (strcmp(name, told[i].name) == 0)
			return fs->writable ? told[i].fn(fs, text) : -EROFS;
	return -EOPNOTSUPP;
}

void bid_op_setxattr(fuse_req_t req, fuse_ino_t number, const char *name, const char *value, size_t size, int flags)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer;
	const struct bid_inode *inode = bid_inodes_find(fs->inodes, number, &buffer);
	int r;

	if (!inode)
		r = -ESTALE;
	else if (inode->node.type != BID_NODE_META)
		r = -EOPNOTSUPP;
	else
		r = tell(fs, name, value, size);
	fuse_reply_err(req, -r);
}
