/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pieces: the artifacts that a detail names. perf knows neither sources nor sections, so they lie in our own folder
 * (docs/FORMAT.md): what was fetched, which nothing in it can prove right, and sections that were cut out of a file that is here.
 */
#ifndef BID_DISK_PIECE_H
#define BID_DISK_PIECE_H

#include <limits.h>

#include "api/piece.h"
#include "api/store.h"
#include "disk/publish/temp.h"

/* ".bidfs/source/xx/rest/usr/src/a.c", ".bidfs/section/xx/rest/.text"; with the detail NULL, the directory of all of them. */
const char *bid_piece_path(const struct bid_request *request, char buf[static PATH_MAX]);

/* The file that is kept of @request, as it is. -ENOENT if there is none. */
int bid_piece_open(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file);

/* Give @temp, which is on disk, its name, in the place of what has it only with @replace; else that is -EEXIST. */
int bid_piece_publish(struct bid_store *store, const struct bid_request *request, struct bid_temp *temp, bool replace);

/* @path is a directory of sources that lies deeper than any source. A non-zero return ends the walk, and is returned. */
typedef int (*bid_pieces_deep_fn)(void *user, const char *path);

/* bid_store_each_piece(). Directories deeper than BID_DETAIL_DEPTH are not read; @deep, which may be NULL, is called for them. */
int bid_pieces_walk(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, bid_piece_fn fn, bid_pieces_deep_fn deep,
		    void *user);

/* Is anything kept for @id? */
bool bid_pieces_any(struct bid_store *store, const struct bid_id *id);

/* Remove the file of @request, and the directories that are empty then. -ENOENT if there is none. */
int bid_piece_remove(struct bid_store *store, const struct bid_request *request);

/* Remove all that is kept of @id. */
void bid_pieces_remove(struct bid_store *store, const struct bid_id *id);

#endif
