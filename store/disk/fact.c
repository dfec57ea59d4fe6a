// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/fact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "disk/layout.h"
#include "disk/store.h"

enum {
	FANOUT = 256,
	ATTEMPTS = 3, /* while others write the same */
};

static int open_parent(struct bid_store *store, const char *folder, const struct bid_artifact *artifact, const char *more,
		       bool make, int *ret_dir, char ret_name[static BID_LAYOUT_MAX + BID_FACT_MORE_MAX])
{
	char record[BID_LAYOUT_MAX];
	int r = bid_store_open_fanout(store, folder, artifact, make, ret_dir, record);

	if (r == 0)
		snprintf(ret_name, BID_LAYOUT_MAX + BID_FACT_MORE_MAX, "%s%s%s", record, *more ? "." : "", more);
	return r;
}

/* Does @error mean that another kind of file lies in the place of a fact or of its directory? */
static bool is_something_else(int error)
{
	return error == -EINVAL || error == -ENOTDIR || error == -ELOOP;
}

static int read_text(int dir, const char *name, char ret_text[static BID_FACT_MAX])
{
	ssize_t len = readlinkat(dir, name, ret_text, BID_FACT_MAX);

	if (len < 0)
		return -errno;
	if (len == BID_FACT_MAX)
		return -EINVAL;
	ret_text[len] = '\0';
	return 0;
}

int bid_fact_read(struct bid_store *store, const char *folder, const struct bid_artifact *artifact, const char *more,
		  char ret_text[static BID_FACT_MAX])
{
	char name[BID_LAYOUT_MAX + BID_FACT_MORE_MAX];
	bid_auto_fd int dir = -1;
	int r = open_parent(store, folder, artifact, more, false, &dir, name);

	if (r == 0)
		r = read_text(dir, name, ret_text);
	return is_something_else(r) ? -ENOENT : r;
}

int bid_fact_write(struct bid_store *store, const char *folder, const struct bid_artifact *artifact, const char *more,
		   const char *text)
{
	char name[BID_LAYOUT_MAX + BID_FACT_MORE_MAX];
	bid_auto_fd int dir = -1;
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = open_parent(store, folder, artifact, more, true, &dir, name);
	for (int i = 0; r == 0 && i < ATTEMPTS; i++) {
		if (symlinkat(text, dir, name) == 0)
			return 0;
		if (errno != EEXIST || (unlinkat(dir, name, 0) < 0 && errno != ENOENT && unlinkat(dir, name, AT_REMOVEDIR) < 0))
			r = -errno;
	}
	return r == 0 ? -EEXIST : r;
}

void bid_fact_remove(struct bid_store *store, const char *folder, const struct bid_artifact *artifact, const char *more)
{
	char name[BID_LAYOUT_MAX + BID_FACT_MORE_MAX];
	bid_auto_fd int dir = -1;

	if (bid_store_writable(store) && open_parent(store, folder, artifact, more, false, &dir, name) == 0)
		unlinkat(dir, name, 0);
}

struct each_fact {
	bid_fact_fn fn;
	void *user;
};

static int each_in(void *user, DIR *dir, const char *first)
{
	const struct each_fact *each = user;
	char text[BID_FACT_MAX];
	struct dirent *entry;

	while ((entry = readdir(dir)))
		if (read_text(dirfd(dir), entry->d_name, text) == 0)
			each->fn(each->user, first, entry->d_name, text);
	return 0;
}

int bid_fact_each(struct bid_store *store, const char *folder, bid_fact_fn fn, void *user)
{
	return bid_store_each_fanout(store, folder, each_in, &(struct each_fact){ .fn = fn, .user = user });
}

struct old {
	int64_t written; /* nanoseconds since the epoch */
	char name[BID_LAYOUT_MAX + BID_FACT_MORE_MAX];
};

static int by_age(const void *a, const void *b)
{
	const struct old *one = a, *other = b;

	return (one->written > other->written) - (one->written < other->written);
}

struct limit {
	size_t max;
	int64_t before;
};

/* Trim the facts in @dir; a longer name is no fact. */
static int trim_fanout(void *user, DIR *dir, const char *first)
{
	const struct limit *limit = user;
	bid_auto_free struct old *facts = NULL;
	size_t n = 0, room = 0;
	struct dirent *entry;
	struct stat st;

	while ((entry = readdir(dir))) {
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode) ||
		    strlen(entry->d_name) >= sizeof(facts->name))
			continue;
		if (st.st_mtim.tv_sec < limit->before) {
			unlinkat(dirfd(dir), entry->d_name, 0);
			continue;
		}
		if (bid_array_grow(facts, n, room) < 0)
			return -ENOMEM;
		facts[n].written = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		memcpy(facts[n++].name, entry->d_name, strlen(entry->d_name) + 1);
	}
	if (n <= limit->max)
		return 0;
	qsort(facts, n, sizeof(*facts), by_age);
	for (size_t i = 0; i < n - limit->max / 2; i++)
		unlinkat(dirfd(dir), facts[i].name, 0);
	return 0;
}

int bid_fact_trim(struct bid_store *store, const char *folder, size_t max, int64_t before)
{
	return bid_store_each_fanout(store, folder, trim_fanout, &(struct limit){ .max = max / FANOUT, .before = before });
}
