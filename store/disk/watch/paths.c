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
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "disk/root.h"

enum { FIRST_BUCKETS = 1024 }; /* a power of two */

#define DIR_EVENTS  (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR)
#define FILE_EVENTS (IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF)

struct bid_paths_node {
	struct bid_paths_node *parent; /* NULL for the root, and for files */
	struct bid_paths_node *children;
	struct bid_paths_node *sibling, **at; /* among the children of the parent */
	struct bid_paths_node *next_by_name, *next_by_wd; /* in their buckets */
	struct bid_hold *holds;
	unsigned busy; /* not to be freed, though nobody holds it */
	int wd; /* the kernel's watch; -1 if it is no directory, and no file */
	bool unseen; /* nobody has looked whether it is a directory */
	struct bid_stamp stamp; /* of a file */
	char name[];
};

struct table {
	struct bid_paths_node **buckets;
	size_t n_buckets, n;
};

struct bid_paths {
	int root; /* borrowed */
	int inotify; /* owned */
	dev_t dev; /* of the root */
	struct bid_paths_node *top; /* the root */
	struct table names; /* by parent and name */
	struct table wds;
};

static struct bid_paths_node **next_in(const struct bid_paths *paths, const struct table *table, struct bid_paths_node *node)
{
	return table == &paths->names ? &node->next_by_name : &node->next_by_wd;
}

static uint64_t hash_name(const struct bid_paths_node *parent, const char *name)
{
	return XXH3_64bits_withSeed(name, strlen(name), (uintptr_t)parent);
}

static uint64_t hash_wd(int wd)
{
	return (uint64_t)wd * 0x9e3779b97f4a7c15U >> 32;
}

static struct bid_paths_node **bucket(const struct table *table, uint64_t hash)
{
	return &table->buckets[hash & (table->n_buckets - 1)];
}

static uint64_t hash_in(const struct bid_paths *paths, const struct table *table, const struct bid_paths_node *node)
{
	return table == &paths->names ? hash_name(node->parent, node->name) : hash_wd(node->wd);
}

static void grow(struct bid_paths *paths, struct table *table)
{
	struct table larger = { .n_buckets = table->n_buckets * 2, .n = table->n };

	larger.buckets = calloc(larger.n_buckets, sizeof(*larger.buckets));
	if (!larger.buckets)
		return; /* slower, not wrong */
	for (size_t i = 0; i < table->n_buckets; i++) {
		struct bid_paths_node *node, *next;

		for (node = table->buckets[i]; node; node = next) {
			struct bid_paths_node **at = bucket(&larger, hash_in(paths, table, node));

			next = *next_in(paths, table, node);
			*next_in(paths, table, node) = *at;
			*at = node;
		}
	}
	free(table->buckets);
	*table = larger;
}

static void enter(struct bid_paths *paths, struct table *table, struct bid_paths_node *node)
{
	struct bid_paths_node **at;

	if (table->n >= table->n_buckets)
		grow(paths, table);
	at = bucket(table, hash_in(paths, table, node));
	*next_in(paths, table, node) = *at;
	*at = node;
	table->n++;
}

static void take_out(struct bid_paths *paths, struct table *table, struct bid_paths_node *node)
{
	struct bid_paths_node **at = bucket(table, hash_in(paths, table, node));

	while (*at != node)
		at = next_in(paths, table, *at);
	*at = *next_in(paths, table, node);
	table->n--;
}

static struct bid_paths_node *find_child(const struct bid_paths *paths, const struct bid_paths_node *parent, const char *name)
{
	struct bid_paths_node *node = *bucket(&paths->names, hash_name(parent, name));

	while (node && (node->parent != parent || strcmp(node->name, name) != 0))
		node = node->next_by_name;
	return node;
}

static struct bid_paths_node *find_wd(const struct bid_paths *paths, int wd)
{
	struct bid_paths_node *node = *bucket(&paths->wds, hash_wd(wd));

	while (node && node->wd != wd)
		node = node->next_by_wd;
	return node;
}

static struct bid_paths_node *node_new(struct bid_paths *paths, struct bid_paths_node *parent, const char *name)
{
	size_t len = strlen(name);
	struct bid_paths_node *node = calloc(1, sizeof(*node) + len + 1);

	if (!node)
		return NULL;
	memcpy(node->name, name, len + 1);
	node->wd = -1;
	node->parent = parent;
	if (!parent)
		return node;
	node->sibling = parent->children;
	if (node->sibling)
		node->sibling->at = &node->sibling;
	node->at = &parent->children;
	parent->children = node;
	enter(paths, &paths->names, node);
	return node;
}

/* The kernel has given the watch up itself. */
static void lose_wd(struct bid_paths *paths, struct bid_paths_node *node)
{
	if (node->wd < 0)
		return;
	take_out(paths, &paths->wds, node);
	node->wd = -1;
}

/* Free @node if nobody is interested in it, and then perhaps the directories above. */
static void release(struct bid_paths *paths, struct bid_paths_node *node)
{
	while (node && node != paths->top && !node->holds && !node->children && !node->busy) {
		struct bid_paths_node *parent = node->parent;

		if (node->wd >= 0 && paths->inotify >= 0)
			inotify_rm_watch(paths->inotify, node->wd);
		lose_wd(paths, node);
		if (parent) {
			take_out(paths, &paths->names, node);
			*node->at = node->sibling;
			if (node->sibling)
				node->sibling->at = node->at;
		}
		free(node);
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
static int watch_dir(struct bid_paths *paths, struct bid_paths_node *node, const char *path, int *ret_dir)
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
	node->wd = r;
	enter(paths, &paths->wds, node);
	*ret_dir = bid_steal_fd(&fd);
	return 0;
}

int bid_paths_new(int root, struct bid_paths **ret_paths)
{
	struct bid_paths *paths = calloc(1, sizeof(*paths));
	bid_auto_fd int dir = -1;
	struct stat st;
	int r = -ENOMEM;

	if (!paths)
		return -ENOMEM;
	paths->root = root;
	paths->inotify = -1;
	paths->names.n_buckets = paths->wds.n_buckets = FIRST_BUCKETS;
	paths->names.buckets = calloc(FIRST_BUCKETS, sizeof(*paths->names.buckets));
	paths->wds.buckets = calloc(FIRST_BUCKETS, sizeof(*paths->wds.buckets));
	paths->top = node_new(paths, NULL, "");
	if (!paths->names.buckets || !paths->wds.buckets || !paths->top)
		goto fail;
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
	free(paths->names.buckets);
	free(paths->wds.buckets);
	free(paths);
}

int bid_paths_fd(const struct bid_paths *paths)
{
	return paths->inotify;
}

static int hold(struct bid_paths *paths, struct bid_paths_node *node, void *holder, struct bid_hold **holds)
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
	struct bid_paths_node *node = paths->top;
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
		struct bid_paths_node *child;

		r = is_plain(path + done, len) ? 0 : -EINVAL;
		if (r < 0)
			break;
		snprintf(name, sizeof(name), "%.*s", (int)len, path + done);
		done += len;
		snprintf(upto, sizeof(upto), "%.*s", (int)done, path);
		bid_close(bid_steal_fd(&dir));
		child = find_child(paths, node, name);
		if (child && !child->unseen) {
			/* what was no directory is none: else all of its holders would have been told, or are about to be */
			node = child;
			r = node->wd < 0;
			continue;
		}
		if (!child)
			child = node_new(paths, node, name);
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
	struct bid_paths_node *node;
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
	node = find_wd(paths, wd);
	if (!node) {
		node = node_new(paths, NULL, "");
		if (!node) {
			inotify_rm_watch(paths->inotify, wd);
			return -ENOMEM;
		}
		node->wd = wd;
		node->stamp = stamp;
		enter(paths, &paths->wds, node);
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
static bool is_path_of(const struct bid_paths_node *node, const char *path, size_t len)
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
	const struct bid_paths_node *node = paths->top;
	char name[NAME_MAX + 1];

	for (;;) {
		size_t len = strcspn(path, "/");

		if (!is_plain(path, len))
			return NULL;
		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		node = find_child(paths, node, name);
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

static void tell_holders(struct bid_paths_node *node, void (*fn)(void *user, void *holder), void *user)
{
	while (node->holds)
		fn(user, node->holds->holder);
}

/* All that is held of @node and below: what nobody holds, and has nothing below it, is not there any more. */
static void tell_below(struct bid_paths *paths, struct bid_paths_node *node, void (*fn)(void *user, void *holder), void *user)
{
	node->busy++;
	while (node->holds || node->children) {
		struct bid_paths_node *held = node;

		while (!held->holds)
			held = held->children;
		fn(user, held->holds->holder);
	}
	node->busy--;
	release(paths, node);
}

void *bid_paths_closed(const struct bid_paths *paths, const struct inotify_event *event, const struct bid_stamp **ret_stamp)
{
	struct bid_paths_node *node = event->mask == IN_CLOSE_WRITE ? find_wd(paths, event->wd) : NULL;

	if (!node || node->parent || !node->holds)
		return NULL;
	*ret_stamp = &node->stamp;
	return node->holds->holder;
}

void bid_paths_event(struct bid_paths *paths, const struct inotify_event *event, void (*fn)(void *user, void *holder), void *user)
{
	struct bid_paths_node *node = event->wd >= 0 ? find_wd(paths, event->wd) : NULL;
	struct bid_paths_node *child;

	if (!node)
		return;
	if (event->mask & (IN_IGNORED | IN_UNMOUNT)) {
		if (event->mask & IN_IGNORED)
			lose_wd(paths, node);
		tell_below(paths, node, fn, user);
		return;
	}
	/* a directory lets others through now; what is in it is watched itself */
	if (event->mask & IN_ATTRIB && event->mask & IN_ISDIR && !event->len)
		tell_below(paths, node, fn, user);
	if (event->mask & IN_ATTRIB && (event->mask & IN_ISDIR || event->len))
		return;
	node->busy++;
	child = event->len ? find_child(paths, node, event->name) : NULL;
	if (child)
		tell_below(paths, child, fn, user);
	tell_holders(node, fn, user);
	node->busy--;
	release(paths, node);
}
