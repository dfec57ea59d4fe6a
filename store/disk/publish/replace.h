/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Another file in the place of a stored one. */
#ifndef BID_DISK_REPLACE_H
#define BID_DISK_REPLACE_H

#include "api/store.h"

/*
 * Put the file at @fd under @name in the directory @to, in place of any other file. The file has a name already: a file without
 * names cannot get a second one.
 */
int bid_replace_name(struct bid_store *store, int fd, int to, const char *name);

/*
 * Replace the store's file of @artifact by the file at @fd, which has a name already, under the known names: the target of perf's
 * link, the recorded names, and @path, which may be NULL. With @only, only the file with these attributes. The result is on disk
 * on return of the number of replaced names; else a negative errno.
 */
int bid_replace(struct bid_store *store, const struct bid_artifact *artifact, const char *path, const struct stat *only, int fd);

#endif
