/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Giving an artifact that was checked its names, for all that do it: transactions, additions, what is staged, what is made. */
#ifndef BID_DISK_PUBLISH_H
#define BID_DISK_PUBLISH_H

#include <limits.h>

#include "api/elf.h"
#include "api/store.h"

/*
 * Give an artifact its names: the file @kind in the directory @path (relative to the store) by the function @put, which links it
 * into an open directory and says -EEXIST if the name is taken, and perf's link for @id if there is none. With @durable all of it
 * is on disk on return. Returns 0, or -EEXIST if another file has the name (perf's link is made all the same).
 */
int bid_publish(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const char *path, bool durable,
		int (*put)(void *user, int dir, const char *name), void *user);

/* The same, and if what has the name does not answer @request, in the place of that, which is set aside. */
int bid_publish_instead(struct bid_store *store, const struct bid_request *request, const char *path, bool durable,
			int (*put)(void *user, int dir, const char *name), void *user);

/* As bid_publish(). @ret_linked: was perf's link made, to lead to @path? If not, there was one, which may lead elsewhere. */
int bid_publish_linking(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const char *path, bool durable,
			int (*put)(void *user, int dir, const char *name), void *user, bool *ret_linked);

/* perf's link for @id to the directory @target (relative to the store), unless there is one. */
int bid_publish_link(struct bid_store *store, const struct bid_id *id, const char *target, bool durable);

/*
 * Is the ELF file open at @fd, as a whole, the artifact @request? Returns 0, -EBADMSG and in @reason (of @size bytes) why not, in
 * words, or as pread(2).
 */
int bid_examine_for(int fd, const struct bid_request *request, char *reason, size_t size, struct bid_elf_info *ret_info);

/*
 * Make way for a right file at @path, debuginfo that is not stripped: move the file there to the quarantine, with a warning, if it
 * certainly does not answer @request, or rather the id that that is filed under (bid_elf_identify_any() has the rule), and remove
 * stripped debuginfo. Returns whether the name is free. Readers never call this.
 */
bool bid_publish_make_way(struct bid_store *store, const char *path, const struct bid_request *request);

/* Where the artifacts of @id go if nobody says otherwise: where perf's link leads, if to a place of it, or with the nameless. */
void bid_publish_where(struct bid_store *store, const struct bid_id *id, char ret_path[static PATH_MAX]);

#endif
