// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * GETXATTR, LISTXATTR: the origin of a file, and the last responses for an id, as user.bidfs.*. Attributes outside of that, such
 * as access control lists (ls -l), are frequent, and get their answer without a look at the store.
 */
#include "fuse/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "synthetic.h"

#define PREFIX "user.bidfs."

/* Attributes from the record of the store, by the name behind PREFIX. */
static const struct {
	const char *name, *fact;
} recorded[] = {
	{ "origin", "how" },	{ "time", "time" }, { "digest", "digest" },   { "server", "server" },
	{ "url", "url" },	{ "file", "file" }, { "archive", "archive" }, { "ima_signature", "ima_signature" },
	{ "signer", "signer" },
};

/* The answer: the value of one attribute, or the names of all, each with its NUL. */
struct attributes {
	const char *wanted; /* NULL for all names */
	char *data; /* owned */
	size_t size;
	bool found;
};

static void attributes_release(struct attributes *attributes)
{
	free(attributes->data);
}

static int append_data(struct attributes *attributes, const char *data, size_t size)
{
	char *larger = realloc(attributes->data, attributes->size + size);

	if (!larger)
		return -ENOMEM;
	memcpy(larger + attributes->size, data, size);
	attributes->data = larger;
	attributes->size += size;
	return 0;
}

/* Add the attribute @name. Returns 1 when the answer is complete. */
static int add_attribute(struct attributes *attributes, const char *name, const char *value)
{
	char full[64];

	if (!attributes->wanted) {
		snprintf(full, sizeof(full), PREFIX "%s", name);
		return append_data(attributes, full, strlen(full) + 1);
	}
	if (strcmp(attributes->wanted, name) != 0)
		return 0;
	attributes->found = true;
	return append_data(attributes, value, strlen(value)) < 0 ? -ENOMEM : 1;
}

/* bid_store_fact_fn */
static int add_fact(void *user, const char *fact, const char *value)
{
	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++)
		if (strcmp(recorded[i].fact, fact) == 0)
			return add_attribute(user, recorded[i].name, value);
	return 0;
}

static int stop_at_first(void *user, const struct bid_report *report, unsigned again_s)
{
	return 1;
}

/* Add the attribute of the directory of an id. The names alone cost less than the value. */
static int collect_of_id(struct bid_fs *fs, const struct bid_node *node, struct attributes *attributes)
{
	bid_auto_free char *responses = NULL;

	if (!attributes->wanted)
		return bid_broker_each_response(fs->broker, &node->id, stop_at_first, NULL) > 0
			       ? add_attribute(attributes, "responses", NULL)
			       : 0;
	if (strcmp(attributes->wanted, "responses") != 0)
		return 0;
	responses = bid_responses_json(fs, &node->id);
	return responses ? add_attribute(attributes, "responses", responses) : 0;
}

static int collect_of_file(struct bid_fs *fs, const struct bid_node *node, struct attributes *attributes)
{
	struct bid_request request = bid_node_request(node);
	char hex[BID_ID_HEX_MAX];
	int r = add_attribute(attributes, "id", bid_id_format(&node->id, hex));

	if (r == 0)
		r = add_attribute(attributes, "kind", bid_kind_name(node->kind));
	if (r == 0)
		r = bid_store_each_fact(fs->store, &request, add_fact, attributes);
	return r < 0 && r != -ENOENT && r != -EBADMSG ? r : 0;
}

static int collect_attributes(struct bid_fs *fs, const struct bid_node *node, struct attributes *attributes)
{
	int r = 0;

	if (node->type == BID_NODE_FILE)
		r = collect_of_file(fs, node, attributes);
	else if (node->type == BID_NODE_ID)
		r = collect_of_id(fs, node, attributes);
	return r < 0 ? r : 0;
}

static void reply_data(fuse_req_t req, const struct attributes *attributes, size_t size)
{
	if (size == 0)
		fuse_reply_xattr(req, attributes->size);
	else if (size < attributes->size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, attributes->data, attributes->size);
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
	bid_cleanup(attributes_release) struct attributes attributes = { .wanted = name + strlen(PREFIX) };
	struct bid_inode buffer;
	const struct bid_inode *inode;
	int r;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0) {
		/* NFS-Ganesha takes EOPNOTSUPP for access control lists as an error */
		fuse_reply_err(req, is_in_namespace(name) ? ENODATA : EOPNOTSUPP);
		return;
	}
	inode = bid_inodes_find(fs->inodes, number, &buffer);
	r = inode ? collect_attributes(fs, &inode->node, &attributes) : -ESTALE;
	if (r < 0)
		fuse_reply_err(req, -r);
	else if (!attributes.found)
		fuse_reply_err(req, ENODATA);
	else
		reply_data(req, &attributes, size);
}

void bid_op_listxattr(fuse_req_t req, fuse_ino_t number, size_t size)
{
	struct bid_fs *fs = bid_fs_of(req);
	bid_cleanup(attributes_release) struct attributes attributes = { .wanted = NULL };
	struct bid_inode buffer;
	const struct bid_inode *inode = bid_inodes_find(fs->inodes, number, &buffer);
	int r = inode ? collect_attributes(fs, &inode->node, &attributes) : -ESTALE;

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		reply_data(req, &attributes, size);
}
