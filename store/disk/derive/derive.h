/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Artifacts that are made from others under the same id. */
#ifndef BID_DISK_DERIVE_H
#define BID_DISK_DERIVE_H

#include "api/store.h"

/*
 * Make what @request asks for and nobody stored: the symbol table of a kernel, from the symbols of its vmlinux or debug file; the
 * probe definitions of a program, from its static probes. They are put into @store where perf finds them too, but for a table,
 * which is kept in our folder: where perf has one, it files none of the kernel that runs, with the addresses and modules of that.
 * Into memory where @store cannot be written. Errors as of bid_store_find(); -ENOENT if there is nothing to make it from.
 */
int bid_derive(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file);

#endif
