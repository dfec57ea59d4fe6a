/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing to a store in the steps in which perf writes to its cache (perf, util/build-id.c): create directories, write a file under
 * a temporary name and link it to its final name ("api/written_file.h"), create perf's link. A file system offers
 * these steps to perf. The rules of the store hold too: it checks bytes before they get a name, and an id has one object. Paths are
 * relative to the store, without "..". All functions return -EROFS on a store opened without BID_STORE_WRITE, and may block on
 * disk.
 */
#ifndef BID_API_PERF_WRITE_H
#define BID_API_PERF_WRITE_H

#include "api/store.h"

/* mkdir(2) and rmdir(2), which return a negative errno. The former creates missing parents. */
int bid_store_mkdir(struct bid_store *store, const char *path);
int bid_store_rmdir(struct bid_store *store, const char *path);

/*
 * Create perf's link for @id with the text @text. Returns 0, -EEXIST if there is a link already, with any text, or -EINVAL if the
 * text has another form than perf's.
 */
int bid_store_symlink(struct bid_store *store, const struct bid_id *id, const char *text);

/* Remove perf's link for @id, and nothing else. Returns 0, or -ENOENT if there is no such link. */
int bid_store_unlink_link(struct bid_store *store, const struct bid_id *id);

/* Remove the file of @artifact in the directory @path. -ENOENT if there is none. */
int bid_store_unlink(struct bid_store *store, const struct bid_artifact *artifact, const char *path);

/*
 * Is @found the file of @artifact in @store itself, not in a lower store, and without another name, for example that of its source?
 */
bool bid_store_has_alone(struct bid_store *store, const struct bid_artifact *artifact, const struct stat *found);

/*
 * Open the probe definitions of @id for reading and writing: the file that bid_store_find() finds in the store, else at the target
 * of perf's link, else in @path. If there are none, create them with the bytes of @content: none of BID_FILE_NONE; NULL creates no
 * file. perf writes this text in place, so there is no transaction. Returns 0 and a descriptor for the caller to close, or -ENOENT.
 */
int bid_store_open_probes(struct bid_store *store, const struct bid_id *id, const char *path, const struct bid_file *content,
			  int *ret_fd);

#endif
