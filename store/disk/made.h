/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What was made of something that is here, and kept so that it need not be made again: a compressed module, unpacked, and a
 * kernel's symbol table (docs/FORMAT.md, "Our own folder"). perf has no place for either. When it was used last is its access time,
 * which is set where the file system does not; it has the modification time of what it was made of.
 */
#ifndef BID_DISK_MADE_H
#define BID_DISK_MADE_H

#include <limits.h>
#include <time.h>

#include "api/store.h"
#include "disk/layout.h"
#include "disk/publish/temp.h"

/* Where what was made for @request is kept: ".bidfs/kallsyms/xx/rest" of a symbol table, ".bidfs/unpacked/xx/rest" else. */
const char *bid_made_path(const struct bid_request *request, char buf[static BID_LAYOUT_MAX]);

/* Is a symbol table kept that was made for @filed? */
bool bid_made_has_table(struct bid_store *store, const struct bid_id *filed);

/* Keep what is in @temp there, in the place of what is. The bytes are on disk on return. */
int bid_made_keep(struct bid_store *store, const struct bid_request *request, struct bid_temp *temp);

/* What is kept for @request, if anything is, was used now. Sets that if it was before @if_before. */
void bid_made_used(struct bid_store *store, const struct bid_request *request, time_t if_before);

/* Call @fn for each, with its lstat(2). A non-zero return ends it and is returned. What is called for may be removed. */
int bid_made_each(struct bid_store *store, int (*fn)(void *user, const struct bid_request *request, const struct stat *st),
		  void *user);

/* Nothing is kept of @filed any more: the build is gone. */
void bid_made_forget(struct bid_store *store, const struct bid_id *filed);

#endif
