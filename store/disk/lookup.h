/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_LOOKUP_H
#define BID_DISK_LOOKUP_H

#include "api/store.h"

/*
 * Lookups of stored artifacts: they read, and change nothing. A function with "find" in its name may derive too.
 *
 *   bid_store_find()		by the kind of the artifact (find_or_derive.c):
 *     bid_find_unpacked()	unpacks a compressed module (derive/derive.h)
 *       bid_lookup_file()	looks for the file, in the store or a lower one
 *         bid_open_checked()	opens it, and checks its build-id
 *   bid_lookup_has_image()	looks for a directory
 *   bid_lookup_stat()		looks for a file, without its check
 */

/*
 * As bid_store_find() with BID_NEVER_DERIVE, but without derived artifacts: @ret_file may be packed. @artifact is valid and has
 * no subpath.
 */
int bid_lookup_file(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file);

/*
 * Does the probe file with the attributes @st take precedence over @before, which is earlier in the order of search? Yes if it
 * alone has definitions; if both are empty, yes if it changed later. perf leaves an empty file in the directory that it lists, and
 * writes the definitions of the kernel to another.
 */
bool bid_probes_precede(const struct stat *st, const struct stat *before);

/* Does @store, or a lower one, list an ELF file or a debug file of @id? 1, 0, or as bid_store_has(). */
int bid_lookup_has_image(struct bid_store *store, const struct bid_id *id);

/* lstat(2) of @artifact in @store itself, unchecked. -ENOENT if there is none. */
int bid_lookup_stat(struct bid_store *store, const struct bid_artifact *artifact, struct stat *ret_stat);

/*
 * Open the regular file @path of @store as @artifact. The id in the file must answer the requested one. The
 * id of a compressed module is inside: @ret_file->packed says that nothing was checked yet (derive/derive.h). Errors as of
 * bid_store_find(); -ENOENT also for anything but a regular file.
 */
int bid_open_checked(struct bid_store *store, const char *path, const struct bid_artifact *artifact, struct bid_file *ret_file);

/*
 * Does the file @path belong to another build with the on-disk id of @artifact? perf's layout has room for one of several ids with
 * the same first 20 bytes.
 */
bool bid_is_anothers_file(struct bid_store *store, const char *path, const struct bid_artifact *artifact);

#endif
