// SPDX-License-Identifier: LGPL-2.1-or-later
#include "refresh.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "names.h"
#include "notify.h"

/* What the kernel does not take back by then it believes for a second at most. It lets in one at a time, so one thread waits. */
enum { TELL_MS = 100 };

/* Names that the kernel may know, of one id. */
struct names {
	struct bid_fs *fs; /* borrowed */
	const struct bid_id *id;
	struct bid_told_name *first; /* owned */
};

/* Without memory it is seen later. */
static void add_name(struct names *names, const struct bid_node *dir, const char *name)
{
	uint64_t number = bid_inode_number(dir);
	struct bid_told_name *one;
	struct bid_inode buffer;

	if (!bid_inodes_find(names->fs->inodes, number, &buffer))
		return;
	one = calloc(1, sizeof(*one) + strlen(name) + 1);
	if (!one)
		return;
	one->dir = number;
	memcpy(one->name, name, strlen(name) + 1);
	one->next = names->first;
	names->first = one;
}

/* bid_store_path_fn: the names in and of a directory of the id. */
static int add_directory(void *user, const char *path)
{
	struct names *names = user;
	struct bid_node dir = { .type = BID_NODE_PATH_ID, .id = *names->id }, by_path = { .type = BID_NODE_BY_PATH };
	char copy[PATH_MAX], *slash;

	snprintf(copy, sizeof(copy), "%s", path);
	dir.path = copy;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		add_name(names, &dir, bid_kind_store_name((enum bid_kind)kind));
	slash = strrchr(copy, '/');
	if (slash) {
		*slash = '\0';
		by_path.path = copy;
		add_name(names, &by_path, slash + 1);
	}
	return 0;
}

static void add_nameless(struct names *names)
{
	char path[PATH_MAX], hex[BID_ID_HEX_MAX];

	snprintf(path, sizeof(path), BID_STORE_NAMELESS "/%s", bid_id_format(names->id, hex));
	add_directory(names, path);
}

static void add_piece(struct names *names, const struct bid_request *request)
{
	struct bid_node dir = { .type = BID_NODE_SECTIONS, .id = request->id };
	char copy[BID_DETAIL_MAX + 1], *name = copy, *slash;

	snprintf(copy, sizeof(copy), "%s", bid_detail_text(request->detail));
	slash = strrchr(copy, '/');
	if (request->kind == BID_KIND_SOURCE && slash) {
		*slash = '\0';
		name = slash + 1;
		dir.type = BID_NODE_SOURCES;
		dir.path = *copy ? copy : NULL;
	}
	add_name(names, &dir, name);
}

/* Have the kernel forget what it was told of the id of @request in every view. */
static void take_back(struct bid_fs *fs, const struct bid_request *request)
{
	struct names names = { .fs = fs, .id = &request->id };

	if (request->detail)
		add_piece(&names, request);
	add_nameless(&names);
	bid_store_each_path(fs->store, &request->id, add_directory, &names);
	bid_notify_names(fs->notifier, names.first);
	bid_notify_build(fs->notifier, &request->id, NULL);
	bid_notify_wait(fs->notifier, TELL_MS);
}

/* @text is "ID", "ID/debuginfo", "ID/source/usr/src/a.c" or "ID/section/.text". @ret_request may have a detail to be released. */
static int parse(const char *text, struct bid_request *ret_request)
{
	const char *name = strchrnul(text, '/');
	struct bid_request request = { .kind = BID_KIND_NONE };
	struct bid_detail *detail = NULL;
	int r = bid_id_parse(text, (size_t)(name - text), &request.id);

	if (r < 0)
		return r;
	if (strncmp(name, "/source/", strlen("/source/")) == 0) {
		request.kind = BID_KIND_SOURCE;
		r = bid_detail_source(name + strlen("/source"), &detail);
	} else if (strncmp(name, "/section/", strlen("/section/")) == 0) {
		request.kind = BID_KIND_SECTION;
		r = bid_detail_section(name + strlen("/section/"), &detail);
	} else if (*name) {
		request.kind = bid_kind_parse(name + 1);
		r = bid_kind_fetchable(request.kind) ? 0 : -EINVAL;
	}
	if (r < 0)
		return r;
	request.detail = detail;
	*ret_request = request;
	return 0;
}

int bid_refresh(struct bid_fs *fs, const char *text, bool accept)
{
	bid_cleanup(bid_request_release) struct bid_request request = { .kind = BID_KIND_NONE };
	int r = parse(text, &request);

	if (r == 0)
		r = bid_broker_refresh(fs->broker, &request, accept);
	if (r == 0)
		take_back(fs, &request);
	return r;
}
