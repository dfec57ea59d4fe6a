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
#include "disk/publish/temp.h"

/*
 * The path of the derived artifact of @request: ".bidfs/kallsyms/xx/rest" of a symbol table, ".bidfs/unstripped/xx/rest" of
 * BID_KIND_UNSTRIPPED, else ".bidfs/unpacked/xx/rest".
 */
const char *bid_derived_path(const struct bid_request *request, char buf[static BID_LAYOUT_MAX]);

/* Does the store have a derived symbol table of @disk_id? */
bool bid_derived_has_table(struct bid_store *store, const struct bid_id *disk_id);

/* Give @temp that path, replacing an earlier file. The bytes are on disk on return. */
int bid_derived_keep(struct bid_store *store, const struct bid_request *request, struct bid_temp *temp);

/* Set the time of the last use of the derived artifact of @request, if that is before @if_before. */
void bid_derived_used(struct bid_store *store, const struct bid_request *request, time_t if_before);

/* Call @fn for each, with its lstat(2). A non-zero return ends the enumeration and is returned. @fn may remove the file. */
int bid_derived_each(struct bid_store *store, int (*fn)(void *user, const struct bid_request *request, const struct stat *st),
		     void *user);

/* Remove the derived artifacts of @disk_id. */
void bid_derived_forget(struct bid_store *store, const struct bid_id *disk_id);

#endif
