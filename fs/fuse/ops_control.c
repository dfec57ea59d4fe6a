// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * SETXATTR: control of a running mount by attributes of ".bidfs". The kernel lets only the owner and root set them, by the mode
 * of the directory, and nobody in a read-only mount.
 */
#include "fuse/ops.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

/* Parse @text: "ID", "ID/debuginfo", "ID/source/usr/src/a.c" or "ID/section/.text". The caller releases @ret_artifact. */
static int parse_artifact(const char *text, struct bid_artifact *ret_artifact)
{
	const char *name = strchrnul(text, '/');
	struct bid_artifact artifact = { .kind = BID_KIND_NONE };
	struct bid_subpath *subpath = NULL;
	int r = bid_id_parse(text, (size_t)(name - text), &artifact.id);

	if (r < 0)
		return r;
	if (strncmp(name, "/source/", strlen("/source/")) == 0) {
		artifact.kind = BID_KIND_SOURCE;
		r = bid_subpath_source(name + strlen("/source"), &subpath);
	} else if (strncmp(name, "/section/", strlen("/section/")) == 0) {
		artifact.kind = BID_KIND_SECTION;
		r = bid_subpath_section(name + strlen("/section/"), &subpath);
	} else if (*name) {
		artifact.kind = bid_kind_parse(name + 1);
		r = bid_kind_fetchable(artifact.kind) ? 0 : -EINVAL;
	}
	if (r < 0)
		return r;
	artifact.subpath = subpath;
	*ret_artifact = artifact;
	return 0;
}

/*
 * Drop the negative cache entry of @text; with @accept, also its first-seen digest. The kernel caches a negative entry for a
 * second.
 */
static int refresh_artifact(struct bid_fs *fs, const char *text, bool accept)
{
	bid_cleanup(bid_artifact_release) struct bid_artifact artifact = { .kind = BID_KIND_NONE };
	int r = parse_artifact(text, &artifact);

	return r < 0 ? r : bid_broker_refresh(fs->broker, &artifact, accept);
}

static int set_offline(struct bid_fs *fs, const char *value)
{
	bool offline = strcmp(value, "1") == 0;

	if (!offline && strcmp(value, "0") != 0)
		return -EINVAL;
	if (offline != bid_broker_is_offline(fs->broker))
		bid_info(offline ? "offline: servers get no requests" : "online: servers get requests");
	bid_broker_set_offline(fs->broker, offline);
	return 0;
}

static int set_control(struct bid_fs *fs, const char *name, const char *value, size_t size)
{
	bool offline = strcmp(name, "user.bidfs.offline") == 0, accept = strcmp(name, "user.bidfs.accept") == 0;
	bid_auto_free char *text = strndup(value, size);

	if (!offline && !accept && strcmp(name, "user.bidfs.refresh") != 0)
		return -EOPNOTSUPP;
	if (!fs->writable)
		return -EROFS;
	if (!text)
		return -ENOMEM;
	return offline ? set_offline(fs, text) : refresh_artifact(fs, text, accept);
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
		r = set_control(fs, name, value, size);
	fuse_reply_err(req, -r);
}
