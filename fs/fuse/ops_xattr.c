// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * GETXATTR, LISTXATTR: the kind and the signer of a file, and the last responses for an id. Other attributes, such as access
 * control lists (ls -l), are frequent, and get their answer without a look at the store.
 */
#include "fuse/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
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
