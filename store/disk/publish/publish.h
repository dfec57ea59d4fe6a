/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of an artifact, for downloads, written files, additions and derivations:
 *
 *   bid_publish_examine()	is the whole file the artifact?
 *   bid_publish_where()	choose the object directory
 *   bid_publish_or_replace()	link the file there, and in place of a wrong one; then perf's link:
 *     bid_publish()
 *     bid_publish_make_way()	after -EEXIST, before another attempt
 */
#ifndef BID_DISK_PUBLISH_H
#define BID_DISK_PUBLISH_H

#include <limits.h>

#include "api/elf.h"
#include "api/store.h"
#include "disk/publish/temp.h"

/*
 * Publish an artifact: link @file, of @kind, into the directory @path (relative to the store). Then create perf's link for @id, if
 * there is none. With @durable all is on disk on return. @ret_linked, which may be NULL, says whether perf's link is new; an
 * earlier link may lead to another path. Returns 0, or -EEXIST if another file has the name, with perf's link in any case.
 */
int bid_publish(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const char *path, bool durable,
		const struct bid_temp *file, bool *ret_linked);

/* As bid_publish(). If the file with the name does not answer @artifact, move that file to the quarantine and replace it. */
int bid_publish_or_replace(struct bid_store *store, const struct bid_artifact *artifact, const char *path, bool durable,
			   const struct bid_temp *file);

/*
 * Is the ELF file open at @fd, as a whole, @artifact? Returns 0, -EBADMSG and in @reason (of @size bytes) why not, in
 * words, or as pread(2).
 */
int bid_publish_examine(int fd, const struct bid_artifact *artifact, char *reason, size_t size, struct bid_elf_info *ret_info);

/*
 * Clear the name of @artifact in the object directory @place for a correct file and unstripped debuginfo. Moves the present file to
 * the quarantine, with a warning, if it certainly does not answer the on-disk id of @artifact (the rule is in
 * bid_elf_build_id_any()), and removes stripped debuginfo. Returns whether the name is free. Readers never call this.
 */
bool bid_publish_make_way(struct bid_store *store, const char *place, const struct bid_artifact *artifact);

/* Return the default object directory of @id: the target of perf's link, if it is one of @id, else the unnamed directory. */
void bid_publish_where(struct bid_store *store, const struct bid_id *id, char ret_path[static PATH_MAX]);

#endif
