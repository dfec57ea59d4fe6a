// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * GETXATTR, LISTXATTR: the kind and the signer of a file, and the last responses for an id. Other attributes, such as access
 * control lists (ls -l), are frequent, and get their answer without a look at the store.
 * SETXATTR: control of a running mount by attributes of ".bidfs". The kernel lets only the owner and root set them, by the mode of
 * the directory, and nobody in a read-only mount.
 */
#include "fuse/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "synthetic.h"

/* bid_store_field_fn */
static int take_signer(void *user, const char *name, const char *value)
{
	char **signer = user;

	if (strcmp(name, "signer") != 0)
		return 0;
	*signer = strdup(value);
	return 1;
}

enum attribute { KIND, SIGNER, RESPONSES, ATTRIBUTES };

static const char *const attributes[] = {
	[KIND] = "user.bidfs.kind",
	[SIGNER] = "user.bidfs.signer",
	[RESPONSES] = "user.bidfs.responses",
};

/* Make the value of an attribute of @node. NULL if the node has none now. */
static char *make_value(const struct bid_fs *fs, const struct bid_node *node, enum attribute attribute)
{
	struct bid_artifact artifact = bid_node_artifact(node);
	char *signer = NULL;

	if (node->type != (attribute == RESPONSES ? BID_NODE_ID : BID_NODE_FILE))
		return NULL;
	if (attribute == KIND)
		return strdup(bid_kind_name(node->kind));
	if (attribute == RESPONSES)
		return bid_responses_json(fs, &node->id);
	bid_store_each_field(fs->store, &artifact, take_signer, &signer);
	return signer;
}

static void reply_data(fuse_req_t req, const char *data, size_t len, size_t size)
{
	if (size == 0)
		fuse_reply_xattr(req, len);
	else if (size < len)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, data, len);
}

/* Is @name in a namespace of xattr(7)? */
static bool is_in_namespace(const char *name)
{
	static const char *const spaces[] = { "user.", "system.", "security.", "trusted." };

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (strncmp(name, spaces[i], strlen(spaces[i])) == 0)
			return true;
	return false;
}

void bid_op_getxattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t size)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	bid_auto_free char *value = NULL;

	for (int i = 0; inode && i < ATTRIBUTES; i++)
		if (strcmp(attributes[i], name) == 0)
			value = make_value(fs, &inode->node, (enum attribute)i);
	/* NFS-Ganesha takes EOPNOTSUPP for access control lists as an error */
	if (!value)
		fuse_reply_err(req, is_in_namespace(name) ? ENODATA : EOPNOTSUPP);
	else
		reply_data(req, value, strlen(value), size);
}

void bid_op_listxattr(fuse_req_t req, fuse_ino_t number, size_t size)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	char names[256];
	size_t len = 0;

	for (int i = 0; inode && i < ATTRIBUTES; i++) {
		bid_auto_free char *value = make_value(fs, &inode->node, (enum attribute)i);

		if (value)
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s", attributes[i]) + 1;
	}
	reply_data(req, names, len, size);
}

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
