/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is what was found in a store still what is there? perf writes the store at any time, and tells nobody; inotify(7) does. Some ids
 * are watched, those that were asked for lately: the names that lead to their files, from the directory of the store on, and the
 * files. Whoever keeps an answer about such an id is told as soon as it may have become another.
 *
 * Not seen is what is written through a shared mapping, before that is unmapped; so bytes are checked whenever they are given out,
 * watched or not. And only what lies in the store itself is watched: no lower store, and nothing on a file system that others may
 * change unseen. Any thread may call.
 */
#ifndef BID_WATCH_H
#define BID_WATCH_H

#include <bid/store.h>

struct bid_watch;

/*
 * @id is not watched any more: it was changed, or (@changed is false) others were asked for later. @note is what the caller left
 * with bid_watch_note(), or NULL, and its own from now on. Called with a lock held: must not block, nor call anything here.
 */
typedef void (*bid_watch_fn)(void *user, const struct bid_id *id, bool changed, void *note);

/*
 * Watch up to @max ids of @store, fewer if the system does not allow as many. Starts a thread. Returns 0, -EOPNOTSUPP if the file
 * system of the store is not a local one, or as inotify_init1(2), open(2), pthread_create(3). @store outlives it.
 */
int bid_watch_new(struct bid_store *store, unsigned max, bid_watch_fn fn, void *user, struct bid_watch **ret_watch);

/* All ids are given up, and told of. @watch may be NULL. */
void bid_watch_free(struct bid_watch *watch);

/* The moment: what is found from now on is seen to change if the id was watched before. @watch may be NULL, here and below. */
uint64_t bid_watch_mark(struct bid_watch *watch);

/* Is @id watched? If so, it counts as asked for. */
bool bid_watch_has(struct bid_watch *watch, const struct bid_id *id);

/*
 * Watch @id, and @file, which was found for it. What was found before, @file too, has to be found anew after another
 * bid_watch_mark(). May block on disk. Returns 0, also if they are watched already, -ENOENT if @file is none of the id's files in
 * the store itself, -ENOSPC if there are no more watches, -EXDEV if a part of a path is on another file system, -ENOMEM, or as
 * open(2), inotify_add_watch(2).
 */
int bid_watch_add(struct bid_watch *watch, const struct bid_id *id, const struct bid_file *file);

/*
 * Watch @id, which the store itself has, but none of its files. As bid_watch_add(), but it takes no place of an id that was asked
 * for in the last hour: -EAGAIN. A walk through all ids would leave none of those watched that are in use.
 */
int bid_watch_add_names(struct bid_watch *watch, const struct bid_id *id);

/*
 * An id that is watched, and of which the directory @dir, relative to the store, has a build: with it an answer about that
 * directory may be noted.
 */
bool bid_watch_id_in(struct bid_watch *watch, const char *dir, struct bid_id *ret_id);

/*
 * Where perf's link for @id leads, if the id is watched and a build lies there: as bid_store_where() and bid_store_classify() would
 * say now, for whatever was changed before this call is taken into account, but without asking the file system. Returns 0,
 * -ENOENT if that is not known, -ENAMETOOLONG.
 */
int bid_watch_where(struct bid_watch *watch, const struct bid_id *id, char *ret_path, size_t size);

/* Changes the caller's note, which is NULL at first. With a lock held, as bid_watch_fn. */
typedef void (*bid_watch_note_fn)(void *user, void **note);

/*
 * If @id has been watched since before the moment @mark, and, unless they are NULL, the file with the attributes @st and the
 * directory @dir, relative to the store, are watched for it, let @fn (may be NULL) change the note, and return true: an answer that
 * was found after @mark may be kept for as long as nothing is told. As it may be told before the answer is given, ask again
 * afterwards.
 */
bool bid_watch_note(struct bid_watch *watch, const struct bid_id *id, uint64_t mark, const struct stat *st, const char *dir,
		    bid_watch_note_fn fn, void *user);

/* How many ids are watched; @ret_error is why the last one that could not be was not, or 0. */
unsigned bid_watch_count(struct bid_watch *watch, int *ret_error);

#endif
