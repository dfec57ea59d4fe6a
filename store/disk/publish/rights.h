/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Privileges of a stored file: no file of the store grants them for long. */
#ifndef BID_DISK_RIGHTS_H
#define BID_DISK_RIGHTS_H

#include <sys/stat.h>

#include "api/store.h"

/*
 * Does the file at @fd, with @st, grant privileges: setuid, setgid or capabilities? A hard link in the store keeps such a file
 * alive after an update for security. A file may get privileges after its link.
 */
bool bid_rights_given(int fd, const struct stat *st);

/*
 * Replace the file of @artifact at @fd by a copy without privileges, under the names of bid_replace(), for the readers of @mode
 * (bid_set_readers()). The copy is on disk on return of 0.
 */
int bid_rights_strip(struct bid_store *store, const struct bid_artifact *artifact, int fd, const char *path, mode_t mode);

#endif
