/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sources and sections: artifacts with a subpath, in our folder, because perf has no place for them (docs/FORMAT.md). From a
 * server, they carry no id; a section may also be derived from a stored file.
 */
#ifndef BID_DISK_SOURCE_SECTION_H
#define BID_DISK_SOURCE_SECTION_H

#include <limits.h>

#include "api/source_section.h"
#include "api/store.h"

/* ".bidfs/source/xx/rest/usr/src/a.c", ".bidfs/section/xx/rest/.text"; with the subpath NULL, the directory of all of them. */
const char *bid_source_section_path(const struct bid_artifact *artifact, char buf[static PATH_MAX]);

/* Open the stored file of @artifact without a check. -ENOENT if there is none. */
int bid_source_section_open(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file);

/* Does the store have a source or section of @id? */
bool bid_source_sections_any(struct bid_store *store, const struct bid_id *id);

/* Remove the file of @artifact and its empty parents. -ENOENT if there is none. */
int bid_source_section_remove(struct bid_store *store, const struct bid_artifact *artifact);

/* Remove all sources or sections of @id, with their records. */
void bid_source_sections_remove(struct bid_store *store, const struct bid_id *id, enum bid_kind kind);

#endif
