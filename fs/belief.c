// SPDX-License-Identifier: LGPL-2.1-or-later
#include "belief.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/stamp.h"
#include "notify.h"

#define LONG 3600.0 /* seconds */

/* bid_watch_fn */
static void taken_back(void *user, const struct bid_id *id, bool changed, void *note)
{
	struct bid_fs *fs = user;

	if (changed)
		bid_notify_build(fs->notifier, id, NULL);
	bid_notify_names(fs->notifier, note);
}

void bid_beliefs_begin(struct bid_fs *fs)
{
	fs->watch_error = bid_watch_new(fs->store, fs->max_kept, taken_back, fs, &fs->watch);
}

void bid_beliefs_end(struct bid_fs *fs)
{
	bid_watch_free(fs->watch);
	fs->watch = NULL;
}

const char *bid_beliefs_reason(const struct bid_fs *fs, unsigned *ret_watched)
{
	int error;

	*ret_watched = bid_watch_count(fs->watch, &error);
	if (!fs->watch)
		error = fs->watch_error;
	switch (-error) {
	case 0:
		return "";
	case EOPNOTSUPP:
		return "the store is on a file system that others may change unseen";
	case EMFILE:
		return "no more inotify instances: see /proc/sys/fs/inotify/max_user_instances";
	case ENOSPC:
		return "no more inotify watches: see /proc/sys/fs/inotify/max_user_watches";
	default:
		return strerror(-error);
	}
}

void bid_belief_seek(struct bid_fs *fs, const struct bid_request *request, struct bid_asked *asked, struct bid_file *file)
{
	struct bid_file found = BID_FILE_NONE;
	struct bid_stamp stamp = bid_stamp_take(&file->st);
	uint64_t before = asked->mark;
	struct stat st;

	if (bid_watch_note(fs->watch, &request->id, before, &file->st, NULL, NULL, NULL) ||
	    bid_watch_add(fs->watch, &request->id, file) < 0)
		return;
	asked->mark = bid_watch_mark(fs->watch);
	/* were the names that lead to it watched already when it was found, it is still what they lead to */
	if (bid_watch_note(fs->watch, &request->id, before, NULL, NULL, NULL, NULL) && fstat(file->fd, &st) == 0 &&
	    bid_stamp_holds(&stamp, &st))
		return;
	if (bid_store_find(fs->store, request, &found) < 0)
		return;
	bid_file_release(file);
	*file = found;
}

void bid_belief_look(struct bid_fs *fs, const struct bid_node *dir, const char *name)
{
	struct bid_node link;

	/* what perf writes next of a build that it is writing would end the watch */
	if (fs->watch && bid_tree_link(dir, name, &link) == 0 && !bid_staging_is_latest(fs->staging, &link.id) &&
	    !bid_watch_has(fs->watch, &link.id))
		bid_watch_add_names(fs->watch, &link.id);
}

void bid_belief_read(struct bid_fs *fs, const struct bid_id *id, enum bid_kind kind, int fd, const struct stat *st)
{
	struct bid_file file = { .fd = fd, .st = *st, .kind = kind };

	/* a listing reads the definitions of every id */
	if (!bid_watch_has(fs->watch, id) && kind != BID_KIND_PROBES)
		bid_watch_add(fs->watch, id, &file);
}

bool bid_belief_holds(struct bid_fs *fs, const struct bid_id *id, const struct stat *st)
{
	uint64_t mark = bid_watch_mark(fs->watch);
	char path[PATH_MAX];

	/* hears what is to be heard */
	return bid_watch_where(fs->watch, id, path, sizeof(path)) == 0 && bid_watch_note(fs->watch, id, mark, st, NULL, NULL, NULL);
}

/* Does what is said of @node depend on no more than what is watched of its id? */
static bool is_watched(const struct bid_fs *fs, const struct bid_asked *asked, const struct bid_node *node)
{
	switch (node->type) {
	case BID_NODE_ID:
	case BID_NODE_LINK:
	case BID_NODE_PATH_ID:
	case BID_NODE_PATH:
		return true;
	case BID_NODE_FILE:
		break;
	default:
		return false;
	}
	/*
	 * Names are taken back with their directory locked, which is so while a name in it is looked up; where that may wait for a
	 * download of another id, everybody would wait for it.
	 */
	return asked->dir == BID_NODE_NONE || asked->dir == BID_NODE_ID || asked->dir == BID_NODE_PATH_ID ||
	       (asked->dir == BID_NODE_DEBUG_FAN && !fs->tree.any_id);
}

/* The directory that @node depends on, beside its id; NULL if on none. */
static const char *dir_of(const struct bid_fs *fs, const struct bid_node *node, char buf[static PATH_MAX])
{
	if (node->type == BID_NODE_PATH_ID || node->type == BID_NODE_PATH)
		return bid_node_path(node);
	if (node->type != BID_NODE_LINK)
		return NULL;
	return bid_tree_readlink(&fs->tree, node, buf, PATH_MAX) < 0 ? "" : buf + strlen("../../");
}

/* bid_watch_note_fn: @user is the name to note, taken over. */
static void note(void *user, void **note)
{
	struct bid_told_name **name = user;

	for (struct bid_told_name *there = *note; there; there = there->next)
		if (there->number == (*name)->number && there->dir == (*name)->dir && strcmp(there->name, (*name)->name) == 0)
			return;
	(*name)->next = *note;
	*note = *name;
	*name = NULL;
}

static struct bid_told_name *name_new(const struct bid_asked *asked, const struct bid_node *node, uint64_t number)
{
	struct bid_told_name *name = bid_told_name_new(asked->dir_number, asked->name ? asked->name : "");

	if (!name)
		return NULL;
	name->number = number;
	name->is_link = node->type == BID_NODE_LINK;
	return name;
}

/* Is the id that @node depends on watched? */
static bool find_id(const struct bid_fs *fs, const struct bid_node *node, struct bid_id *ret_id)
{
	if (node->type == BID_NODE_PATH)
		return bid_watch_id_in(fs->watch, bid_node_path(node), ret_id);
	*ret_id = node->id;
	return bid_watch_has(fs->watch, &node->id);
}

struct bid_told bid_believe(struct bid_fs *fs, const struct bid_asked *asked, const struct bid_node *node, const struct stat *st,
			    struct fuse_entry_param *entry)
{
	bid_auto_free struct bid_told_name *noted = NULL, *name = NULL;
	struct bid_told told = { 0 };
	char buf[PATH_MAX];

	if (!fs->watch || (asked->dir != BID_NODE_NONE && !asked->name) || !is_watched(fs, asked, node))
		return told;
	/* with servers to ask every id has its directory, always the same */
	if (node->type == BID_NODE_ID && fs->tree.any_id) {
		entry->attr_timeout = LONG;
		return told;
	}
	if (!find_id(fs, node, &told.id))
		return told;
	noted = name_new(asked, node, entry->ino);
	name = name_new(asked, node, entry->ino);
	if (!noted || !name || !bid_watch_note(fs->watch, &told.id, asked->mark, st, dir_of(fs, node, buf), note, &noted))
		return told;
	entry->attr_timeout = entry->entry_timeout = LONG;
	told.name = bid_steal(name);
	return told;
}

void bid_belief_check(struct bid_fs *fs, const struct bid_asked *asked, struct bid_told *told)
{
	if (!told->name || bid_watch_note(fs->watch, &told->id, asked->mark, NULL, NULL, NULL, NULL))
		free(told->name);
	else
		bid_notify_names(fs->notifier, told->name);
	told->name = NULL;
}
