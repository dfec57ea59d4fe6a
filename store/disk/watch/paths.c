// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/watch/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "disk/root.h"
#include "disk/watch/parts.h"

/* also of files that are not watched themselves: empty definitions that are written become those that are found */
#define DIR_EVENTS  (IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR)
#define FILE_EVENTS (IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF)

struct bid_paths {
	int root; /* borrowed */
	int inotify; /* owned */
	dev_t dev; /* of the root */
	struct bid_part *top; /* the root */
	struct bid_parts parts;
};

/* Free @node if nobody is interested in it, and then perhaps the directories above. */
static void release(struct bid_paths *paths, struct bid_part *node)
{
	while (node && node != paths->top && !node->holds && !node->children && !node->busy) {
		struct bid_part *parent = node->parent;

		if (node->wd >= 0 && paths->inotify >= 0)
			inotify_rm_watch(paths->inotify, node->wd);
		bid_part_free(&paths->parts, node);
		node = parent;
	}
}

/* inotify_add_watch(2) of what is open at @fd, however it was opened. Returns the watch. */
static int add_watch(const struct bid_paths *paths, int fd, uint32_t events)
{
	char path[BID_FD_PATH_MAX];
	int wd = inotify_add_watch(paths->inotify, bid_fd_path(fd, path), events);

	return wd < 0 ? -errno : wd;
}

/* Watch the directory @path, which is that of @node. Returns 0 and the directory, or 1 if there is none. */
static int watch_dir(struct bid_paths *paths, struct bid_part *node, const char *path, int *ret_dir)
{
	bid_auto_fd int fd = -1;
	struct stat st;
	int r = bid_root_open(paths->root, path, O_PATH | O_DIRECTORY, &fd);

	node->unseen = false;
	if (r == -ENOENT || r == -ENOTDIR)
		return 1;
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != paths->dev)
		return -EXDEV;
	/* one directory by two paths, as bind mounts make it, would have but one watch: that is refused */
	r = add_watch(paths, fd, DIR_EVENTS | IN_MASK_CREATE);
	if (r < 0)
		return r;
	bid_part_watched(&paths->parts, node, r);
	*ret_dir = bid_steal_fd(&fd);
	return 0;
}

int bid_paths_new(int root, struct bid_paths **ret_paths)
{
	struct bid_paths *paths = calloc(1, sizeof(*paths));
	bid_auto_fd int dir = -1;
	struct stat st;
	int r;

	if (!paths)
		return -ENOMEM;
	paths->root = root;
	paths->inotify = -1;
	r = bid_parts_init(&paths->parts);
	if (r < 0)
		goto fail;
	paths->top = bid_part_new(&paths->parts, NULL, "");
	if (!paths->top) {
		r = -ENOMEM;
		goto fail;
	}
	paths->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (paths->inotify < 0 || fstat(root, &st) < 0) {
		r = -errno;
		goto fail;
	}
	paths->dev = st.st_dev;
	r = watch_dir(paths, paths->top, ".", &dir);
	if (r != 0)
		goto fail;
	*ret_paths = paths;
	return 0;

fail:
	bid_paths_free(paths);
	return r > 0 ? -ENOENT : r;
}

void bid_paths_end(struct bid_paths *paths)
{
	bid_close(bid_steal_fd(&paths->inotify));
}

void bid_paths_free(struct bid_paths *paths)
{
	if (!paths)
		return;
	bid_paths_end(paths);
	free(paths->top);
	bid_parts_release(&paths->parts);
	free(paths);
}

int bid_paths_fd(const struct bid_paths *paths)
{
	return paths->inotify;
}

static int hold(struct bid_paths *paths, struct bid_part *node, void *holder, struct bid_hold **holds)
{
	struct bid_hold *new = calloc(1, sizeof(*new));

	if (!new) {
		release(paths, node);
		return -ENOMEM;
	}
	*new = (struct bid_hold){ .node = node, .holder = holder, .next = node->holds, .at = &node->holds, .other = *holds };
	if (new->next)
		new->next->at = &new->next;
	node->holds = new;
	*holds = new;
	return 0;
}

static bool is_plain(const char *part, size_t len)
{
	return len > 0 && len <= NAME_MAX && !(len == 1 && part[0] == '.') && !(len == 2 && part[0] == '.' && part[1] == '.');
}

static int hold_path(struct bid_paths *paths, const char *path, bool look, void *holder, struct bid_hold **holds, int *ret_dir)
{
	struct bid_part *node = paths->top;
	bid_auto_fd int dir = -1;
	char upto[PATH_MAX], name[NAME_MAX + 1];
	size_t done = 0;
	int r = 0;

	if (strlen(path) >= sizeof(upto))
		return -EINVAL;
	if (node->wd < 0)
		return -ENOENT; /* the root is gone */
	/* from the top, so that whatever happens to a part that was looked at already is seen */
	do {
		size_t len = strcspn(path + done, "/");
		struct bid_part *child;

		r = is_plain(path + done, len) ? 0 : -EINVAL;
		if (r < 0)
			break;
		snprintf(name, sizeof(name), "%.*s", (int)len, path + done);
		done += len;
		snprintf(upto, sizeof(upto), "%.*s", (int)done, path);
		bid_close(bid_steal_fd(&dir));
		child = bid_part_below(&paths->parts, node, name);
		if (child && !child->unseen) {
			/* what was no directory is none: else all of its holders would have been told, or are about to be */
			node = child;
			r = node->wd < 0;
			continue;
		}
		if (!child)
			child = bid_part_new(&paths->parts, node, name);
		if (!child) {
			r = -ENOMEM;
			break;
		}
		node = child;
		node->unseen = true;
		if (!look && !path[done])
			break;
		r = watch_dir(paths, node, upto, &dir);
	} while (r == 0 && path[done++] == '/');
	if (r >= 0)
		r = hold(paths, node, holder, holds);
	else
		release(paths, node);
	/* of the last part */
	if (r == 0 && ret_dir && node->wd >= 0)
		*ret_dir = bid_steal_fd(&dir);
	return r;
}

int bid_paths_hold(struct bid_paths *paths, const char *path, void *holder, struct bid_hold **holds, int *ret_dir)
{
	return hold_path(paths, path, true, holder, holds, ret_dir);
}

int bid_paths_hold_name(struct bid_paths *paths, const char *path, void *holder, struct bid_hold **holds)
{
	return hold_path(paths, path, false, holder, holds, NULL);
}

int bid_paths_hold_file(struct bid_paths *paths, int fd, void *holder, struct bid_hold **holds)
{
	struct bid_part *node;
	struct bid_stamp stamp;
	struct stat st;
	int wd;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != paths->dev)
		return -EXDEV;
	stamp = bid_stamp_take(&st);
	/* one that is watched already, for another holder, has the same watch */
	wd = add_watch(paths, fd, FILE_EVENTS);
	if (wd < 0)
		return wd;
	node = bid_part_of_watch(&paths->parts, wd);
	if (!node) {
		node = bid_part_new(&paths->parts, NULL, "");
		if (!node) {
			inotify_rm_watch(paths->inotify, wd);
			return -ENOMEM;
		}
		node->stamp = stamp;
		bid_part_watched(&paths->parts, node, wd);
	}
	return hold(paths, node, holder, holds);
}

bool bid_holds_file(const struct bid_hold *holds, const struct stat *st, uint64_t mark)
{
	for (; holds; holds = holds->other)
		if (!holds->node->parent && holds->since <= mark && holds->node->stamp.ino == st->st_ino &&
		    holds->node->stamp.dev == st->st_dev)
			return true;
	return false;
}

/* Is @path, of which the first @len bytes count, that of @node? */
static bool is_path_of(const struct bid_part *node, const char *path, size_t len)
{
	for (; node->parent; node = node->parent) {
		size_t part = strlen(node->name);

		if (len < part || memcmp(path + len - part, node->name, part) != 0)
			return false;
		len -= part;
		if (len > 0 && path[--len] != '/')
			return false;
		if (len == 0)
			return !node->parent->parent;
	}
	return false;
}

bool bid_holds_dir(const struct bid_hold *holds, const char *path)
{
	for (; holds; holds = holds->other)
		if (holds->node->wd >= 0 && is_path_of(holds->node, path, strlen(path)))
			return true;
	return false;
}

void *bid_paths_holder(const struct bid_paths *paths, const char *path)
{
	const struct bid_part *node = paths->top;
	char name[NAME_MAX + 1];

	for (;;) {
		size_t len = strcspn(path, "/");

		if (!is_plain(path, len))
			return NULL;
		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		node = bid_part_below(&paths->parts, node, name);
		if (!node || node->wd < 0)
			return NULL;
		if (!path[len])
			return node->holds ? node->holds->holder : NULL;
		path += len + 1;
	}
}

void bid_paths_let_go(struct bid_paths *paths, struct bid_hold **holds)
{
	struct bid_hold *one, *other;

	for (one = *holds; one; one = other) {
		other = one->other;
		*one->at = one->next;
		if (one->next)
			one->next->at = one->at;
		release(paths, one->node);
		free(one);
	}
	*holds = NULL;
}

static void tell_holders(struct bid_part *node, void (*fn)(void *user, void *holder), void *user)
{
	while (node->holds)
		fn(user, node->holds->holder);
}

/* All that is held of @node and below: what nobody holds, and has nothing below it, is not there any more. */
static void tell_below(struct bid_paths *paths, struct bid_part *node, void (*fn)(void *user, void *holder), void *user)
{
	node->busy++;
	while (node->holds || node->children) {
		struct bid_part *held = node;

		while (!held->holds)
			held = held->children;
		fn(user, held->holds->holder);
	}
	node->busy--;
	release(paths, node);
}

void *bid_paths_closed(const struct bid_paths *paths, const struct inotify_event *event, const struct bid_stamp **ret_stamp)
{
	struct bid_part *node = event->mask == IN_CLOSE_WRITE ? bid_part_of_watch(&paths->parts, event->wd) : NULL;

	if (!node || node->parent || !node->holds)
		return NULL;
	*ret_stamp = &node->stamp;
	return node->holds->holder;
}

void bid_paths_event(struct bid_paths *paths, const struct inotify_event *event, void (*fn)(void *user, void *holder), void *user)
{
	struct bid_part *node = event->wd >= 0 ? bid_part_of_watch(&paths->parts, event->wd) : NULL;
	struct bid_part *child;

	if (!node)
		return;
	if (event->mask & (IN_IGNORED | IN_UNMOUNT)) {
		if (event->mask & IN_IGNORED)
			bid_part_unwatched(&paths->parts, node);
		tell_below(paths, node, fn, user);
		return;
	}
	/* a directory lets others through now; what is in it is watched itself */
	if (event->mask & IN_ATTRIB && event->mask & IN_ISDIR && !event->len)
		tell_below(paths, node, fn, user);
	if (event->mask & IN_ATTRIB && (event->mask & IN_ISDIR || event->len))
		return;
	node->busy++;
	child = event->len ? bid_part_below(&paths->parts, node, event->name) : NULL;
	if (child)
		tell_below(paths, child, fn, user);
	tell_holders(node, fn, user);
	node->busy--;
	release(paths, node);
}
