/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derived artifacts: from other artifacts of the same id. */
#ifndef BID_DISK_DERIVE_H
#define BID_DISK_DERIVE_H

#include "api/store.h"

/*
 * Derive an artifact that the store lacks: the symbol table of a kernel, from the symbols of its vmlinux or debug file; the probe
 * definitions of a program, from its static probes. Keeps probes where perf finds them too. Keeps a table in the private folder:
 * with a table in its own place, perf would not save the table of the running kernel, with its addresses and modules. Derives into
 * memory if @store is not writable. Errors as bid_store_find(); -ENOENT without a file to derive from.
 */
int bid_derive(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file);

#endif
