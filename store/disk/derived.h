/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Derived artifacts in our folder, because perf has no place for them (docs/FORMAT.md): an unpacked module, a kernel's symbol
 * table, an ELF file put together with its debuginfo. The access time of such a file is its last use; the store sets it where the
 * file system does not. The modification time is that of the original.
 */
#ifndef BID_DISK_DERIVED_H
#define BID_DISK_DERIVED_H

#include <limits.h>
#include <time.h>

#include "api/store.h"
#include "disk/layout.h"

/*
 * The path of the derived artifact of @artifact: ".bidfs/kallsyms/xx/rest" of a symbol table, ".bidfs/unstripped/xx/rest" of
 * BID_KIND_UNSTRIPPED, else ".bidfs/unpacked/xx/rest".
 */
const char *bid_derived_path(const struct bid_artifact *artifact, char buf[static BID_LAYOUT_MAX]);

/* Does the store have a derived symbol table of @disk_id? */
bool bid_derived_has_table(struct bid_store *store, const struct bid_id *disk_id);

/* the bytes and the attributes of a derived artifact */
struct bid_derivation {
	/* Write the artifact to the empty file at @fd. Returns 0, -EFBIG if it has more than @max bytes, or another error. */
	int (*fill)(void *user, int fd, uint64_t max);
	void *user;
	struct stat source; /* its time, readers and owner become those of the artifact */
	uint64_t size; /* size of the artifact, 0 if unknown */
	uint64_t room; /* bytes to evict on a full disk; 0 evicts nothing */
};

/*
 * Derive @artifact. With @keep, in a store that can be written, its file gets the path above, or of a section that of
 * bid_source_section_path() with a record, replacing an earlier file; its bytes are on disk on return. Otherwise, and if that
 * fails, the artifact is in memory while it is open. Returns 0, -ENOMEM, or as @derivation->fill.
 */
int bid_derived_make(struct bid_store *store, const struct bid_artifact *artifact, const struct bid_derivation *derivation,
		     bool keep, struct bid_file *ret_file);

/* The error of a lookup if the source causes the error @r: -EFBIG or -EOPNOTSUPP. 0 for a lack of memory, descriptors or disk. */
int bid_derived_fault(int r);

/* Set the time of the last use of the derived artifact of @artifact, if that is before @if_before. */
void bid_derived_used(struct bid_store *store, const struct bid_artifact *artifact, time_t if_before);

/* Call @fn for each, with its lstat(2). A non-zero return ends the enumeration and is returned. @fn may remove the file. */
int bid_derived_each(struct bid_store *store, int (*fn)(void *user, const struct bid_artifact *artifact, const struct stat *st),
		     void *user);

/* Remove the derived artifacts of @disk_id. */
void bid_derived_forget(struct bid_store *store, const struct bid_id *disk_id);

#endif
