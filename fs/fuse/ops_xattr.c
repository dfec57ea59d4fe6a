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

static char *make_kind(const struct bid_fs *fs, const struct bid_node *node)
{
	return strdup(bid_kind_name(node->kind));
}

/* bid_store_field_fn */
static int take_signer(void *user, const char *name, const char *value)
{
	char **signer = user;

	if (strcmp(name, "signer") != 0)
		return 0;
	*signer = strdup(value);
	return 1;
}

static char *make_signer(const struct bid_fs *fs, const struct bid_node *node)
{
	struct bid_artifact artifact = bid_node_artifact(node);
	char *signer = NULL;

	bid_store_each_field(fs->store, &artifact, take_signer, &signer);
	return signer;
}

static char *make_responses(const struct bid_fs *fs, const struct bid_node *node)
{
	return bid_responses_json(fs, &node->id);
}

static const struct {
	enum bid_node_type type;
	const char *name;
	char *(*make)(const struct bid_fs *fs, const struct bid_node *node); /* NULL if the node has none now */
} attributes[] = {
	{ BID_NODE_FILE, "user.bidfs.kind", make_kind },
	{ BID_NODE_FILE, "user.bidfs.signer", make_signer },
	{ BID_NODE_ID, "user.bidfs.responses", make_responses },
};

enum { ATTRIBUTES = sizeof(attributes) / sizeof(attributes[0]) };

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

	for (size_t i = 0; inode && i < ATTRIBUTES; i++)
		if (attributes[i].type == inode->node.type && strcmp(attributes[i].name, name) == 0)
			value = attributes[i].make(fs, &inode->node);
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

	for (size_t i = 0; inode && i < ATTRIBUTES; i++) {
		bid_auto_free char *value = attributes[i].type == inode->node.type ? attributes[i].make(fs, &inode->node) : NULL;

		if (value)
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s", attributes[i].name) + 1;
	}
	reply_data(req, names, len, size);
}
