// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * GETXATTR, LISTXATTR: the kind of a file, and the last responses for an id, for bidctl. Other attributes, such as access control
 * lists (ls -l), are frequent, and get their answer without a look at the store.
 */
#include "fuse/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "synthetic.h"

static char *make_kind(const struct bid_fs *fs, const struct bid_node *node)
{
	return strdup(bid_kind_name(node->kind));
}

static char *make_responses(const struct bid_fs *fs, const struct bid_node *node)
{
	return bid_responses_json(fs, &node->id);
}

/* A type of nodes has one attribute at most. */
static const struct attribute {
	enum bid_node_type type;
	const char *name;
	char *(*make)(const struct bid_fs *fs, const struct bid_node *node); /* NULL if the node has none now */
} attributes[] = {
	{ BID_NODE_FILE, "user.bidfs.kind", make_kind },
	{ BID_NODE_ID, "user.bidfs.responses", make_responses },
};

static const struct attribute *attribute_of(const struct bid_node *node)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].type == node->type)
			return &attributes[i];
	return NULL;
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
	const struct attribute *attribute = inode ? attribute_of(&inode->node) : NULL;
	bid_auto_free char *value = NULL;

	if (attribute && strcmp(attribute->name, name) == 0)
		value = attribute->make(fs, &inode->node);
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
	const struct attribute *attribute = inode ? attribute_of(&inode->node) : NULL;
	bid_auto_free char *value = attribute ? attribute->make(fs, &inode->node) : NULL;

	reply_data(req, value ? attribute->name : "", value ? strlen(attribute->name) + 1 : 0, size);
}
