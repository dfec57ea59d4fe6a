/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of a build that perf's link does not lead to. perf's layout leads from a path to an id, and from an id to one path; so
 * that the others are found without a walk through the whole store, they are noted in our own folder (docs/FORMAT.md).
 */
#ifndef BID_DISK_NAMES_H
#define BID_DISK_NAMES_H

#include "api/store.h"

/* @id also lies at @path, "usr/bin/ls/ID". Note it, and where perf's link leads now, which may lead elsewhere one day. */
int bid_names_note(struct bid_store *store, const struct bid_id *id, const char *path);

/*
 * Call @fn for every name that was noted of @id; the note is the file @note, and @there says whether anything lies at @path now. A
 * non-zero return ends it and is returned. What is called for may be removed.
 */
int bid_names_each(struct bid_store *store, const struct bid_id *id,
		   int (*fn)(void *user, const char *note, const char *path, bool there), void *user);

/* The build is gone: so are all notes of it. */
void bid_names_forget(struct bid_store *store, const struct bid_id *id);

#endif
