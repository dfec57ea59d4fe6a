// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which names of a store decide what is found for an id that is watched. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "disk/layout.h"
#include "disk/one.h"
#include "disk/root.h"
#include "disk/store.h"
#include "disk/watch/watched.h"

/* The original path that the place @path is in: its time is that of the last of its builds. Not what has all builds of a kind. */
static int hold_parent(struct bid_watched *watched, struct bid_paths *paths, char *path)
{
	char *slash = strrchr(path, '/');
	int r = 0;

	if (!slash || path[0] == '[' || strncmp(path, BID_LAYOUT_LINKS, strlen(BID_LAYOUT_LINKS)) == 0)
		return 0;
	*slash = '\0';
	r = bid_paths_hold(paths, path, watched, &watched->holds, NULL);
	*slash = '/';
	return r;
}

/* perf's link for the id of @watched leads to @path, which is held; @dir is that directory, or -1 if it was watched before. */
static void remember(struct bid_watched *watched, struct bid_store *store, const char *path, int dir)
{
	if (dir >= 0 ? bid_one_is_build(path, dir) : bid_one_classify(store, path) == BID_ENTRY_ID)
		watched->where = strdup(path); /* without memory it is asked for */
}

/* Hold @place, one of those where the id of @watched may lie, and what it is in. */
static int hold_place(struct bid_watched *watched, struct bid_store *store, struct bid_paths *paths, struct bid_place *place,
		      bool linked)
{
	bid_auto_fd int dir = -1;
	int r = bid_paths_hold(paths, place->path, watched, &watched->holds, &dir);

	if (r == 0)
		r = hold_parent(watched, paths, place->path);
	if (r == 0 && linked)
		remember(watched, store, place->path, dir);
	return r;
}

int bid_watched_hold_names(struct bid_watched *watched, struct bid_store *store, struct bid_paths *paths, bool must)
{
	struct bid_spelling spelling = { 0 };
	char link[BID_LAYOUT_MAX];
	struct bid_id filed;
	int r = 0;

	while (r == 0 && bid_spelling_next(&spelling, &watched->id, &filed)) {
		struct bid_place place = { 0 };

		/* before it is read */
		r = bid_paths_hold_name(paths, bid_layout_link(&filed, link), watched, &watched->holds);
		while (r == 0 && bid_place_next(&place, store, &filed, BID_KIND_NONE)) {
			/* where the link itself leads: in perf's old layout it is the file */
			bool linked = spelling.step == 1 && place.step == 1 && strcmp(place.path, link) != 0;

			if (must && spelling.step == 1 && !(place.step == 1 ? linked : place.linked))
				return -ENOENT;
			r = hold_place(watched, store, paths, &place, linked);
		}
	}
	return r;
}

bool bid_place_has(struct bid_store *store, const char *place, enum bid_kind kind, const struct stat *st)
{
	char path[PATH_MAX + 16];
	struct stat there;

	snprintf(path, sizeof(path), "%s/%s", place, bid_kind_store_name(kind));
	if (bid_root_stat(bid_store_root(store), path, &there) < 0 && bid_root_stat(bid_store_root(store), place, &there) < 0)
		return false;
	return there.st_dev == st->st_dev && there.st_ino == st->st_ino;
}

bool bid_is_filed(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const struct stat *st)
{
	struct bid_spelling spelling = { 0 };
	struct bid_id filed;

	while (bid_spelling_next(&spelling, id, &filed)) {
		struct bid_place place = { 0 };

		while (bid_place_next(&place, store, &filed, kind))
			if (bid_place_has(store, place.path, kind, st))
				return true;
	}
	return false;
}
