/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_CTL_GET_MANY_H
#define BID_CTL_GET_MANY_H

#include "ctl/needed_builds.h"

/*
 * Bring into @store all builds named in @from: artifacts of @kind, or debuginfo and ELF files for BID_KIND_NONE. Local files are
 * added, the others downloaded, several at a time. Reports the results, and returns the exit status.
 */
enum ctl_status ctl_get_many(const struct ctl *ctl, struct bid_store *store, enum ctl_needs_from from, enum bid_kind kind);

/* Copy the path that opens @file again. Returns 0, or -ENOENT for a file in memory, or removed since. */
int ctl_file_path(const struct bid_file *file, char *ret_path, size_t size);

#endif
