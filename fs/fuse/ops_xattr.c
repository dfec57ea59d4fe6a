// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where a file came from, and what servers said of an id, as extended attributes: user.bidfs.*. Programs ask for attributes of
 * other sorts all the time, such as access control lists (ls -l); those are answered without a look at anything.
 */
#include "fuse/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuse/last_response.h"

#define PREFIX "user.bidfs."

/* What the store has recorded, by the name of the attribute behind PREFIX. */
static const struct {
	const char *name, *fact;
} recorded[] = {
	{ "origin", "how" }, { "time", "time" }, { "digest", "digest" },   { "server", "server" },
	{ "url", "url" },    { "file", "file" }, { "archive", "archive" }, { "ima_signature", "ima_signature" },
};

/* What one request is after: the value of one attribute, or the names of all, each with its NUL. */
struct answer {
	const char *wanted; /* NULL for the names */
	char *data; /* owned */
	size_t size;
	bool found;
};

static void answer_release(struct answer *answer)
{
	free(answer->data);
}

static int append(struct answer *answer, const char *data, size_t size)
{
	char *larger = realloc(answer->data, answer->size + size);

	if (!larger)
		return -ENOMEM;
	memcpy(larger + answer->size, data, size);
	answer->data = larger;
	answer->size += size;
	return 0;
}

/* There is an attribute @name. Returns 1 if that is all there is to know. */
static int take(struct answer *answer, const char *name, const char *value)
{
	char full[64];

	if (!answer->wanted) {
		snprintf(full, sizeof(full), PREFIX "%s", name);
		return append(answer, full, strlen(full) + 1);
	}
	if (strcmp(answer->wanted, name) != 0)
		return 0;
	answer->found = true;
	return append(answer, value, strlen(value)) < 0 ? -ENOMEM : 1;
}

/* bid_store_fact_fn */
static int take_fact(void *user, const char *fact, const char *value)
{
	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++)
		if (strcmp(recorded[i].fact, fact) == 0)
			return take(user, recorded[i].name, value);
	return 0;
}

/* Of the directory of an id; it costs more than to know that there is something. */
static int look_at_id(struct bid_fs *fs, const struct bid_node *node, struct answer *answer)
{
	bid_auto_free char *responses = NULL;

	if (!answer->wanted)
		return bid_last_response_any(fs, &node->id) ? take(answer, "answers", NULL) : 0;
	if (strcmp(answer->wanted, "answers") != 0)
		return 0;
	responses = bid_last_response_json(fs, &node->id);
	return responses ? take(answer, "answers", responses) : 0;
}

static int look_at_file(struct bid_fs *fs, const struct bid_node *node, struct answer *answer)
{
	struct bid_request request = bid_node_request(node);
	char hex[BID_ID_HEX_MAX];
	int r = take(answer, "id", bid_id_format(&node->id, hex));

	if (r == 0)
		r = take(answer, "kind", bid_kind_name(node->kind));
	if (r == 0)
		r = bid_store_each_fact(fs->store, &request, take_fact, answer);
	return r < 0 && r != -ENOENT && r != -EBADMSG ? r : 0;
}

static int look(struct bid_fs *fs, const struct bid_node *node, struct answer *answer)
{
	int r = 0;

	if (node->type == BID_NODE_FILE)
		r = look_at_file(fs, node, answer);
	else if (node->type == BID_NODE_ID)
		r = look_at_id(fs, node, answer);
	return r < 0 ? r : 0;
}

static void reply(fuse_req_t req, const struct answer *answer, size_t size)
{
	if (size == 0)
		fuse_reply_xattr(req, answer->size);
	else if (size < answer->size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, answer->data, answer->size);
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
	bid_cleanup(answer_release) struct answer answer = { .wanted = name + strlen(PREFIX) };
	struct bid_inode buffer;
	const struct bid_inode *inode;
	int r;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0) {
		/* NFS-Ganesha asks for an access control list, and takes EOPNOTSUPP for an error */
		fuse_reply_err(req, is_in_namespace(name) ? ENODATA : EOPNOTSUPP);
		return;
	}
	inode = bid_inodes_find(fs->inodes, number, &buffer);
	r = inode ? look(fs, &inode->node, &answer) : -ESTALE;
	if (r < 0)
		fuse_reply_err(req, -r);
	else if (!answer.found)
		fuse_reply_err(req, ENODATA);
	else
		reply(req, &answer, size);
}

void bid_op_listxattr(fuse_req_t req, fuse_ino_t number, size_t size)
{
	struct bid_fs *fs = bid_fs_of(req);
	bid_cleanup(answer_release) struct answer answer = { .wanted = NULL };
	struct bid_inode buffer;
	const struct bid_inode *inode = bid_inodes_find(fs->inodes, number, &buffer);
	int r = inode ? look(fs, &inode->node, &answer) : -ESTALE;

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		reply(req, &answer, size);
}
