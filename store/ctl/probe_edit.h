/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Changes of probe definitions while perf may be reading or writing them. */
#ifndef BID_CTL_PROBE_EDIT_H
#define BID_CTL_PROBE_EDIT_H

#include <stdbool.h>

#include "api/store.h"
#include "ctl/probe_file.h"

/* Write the replacement of @old to @out. Returns 0, or a negative errno that ends the edit without a change. */
typedef int (*ctl_probe_edit_fn)(void *user, const struct ctl_probe_file *old, FILE *out);

/*
 * Change the definitions of @id with @edit. Another writer's change in between leads to a further call of @edit. The first
 * definitions come from the static probes. With @dry_run nothing changes.
 *
 * perf reads the file, truncates it and writes it anew, in place and without a lock. A new file in place of the old one would lose
 * the definitions that perf is about to write. Therefore bidctl also writes in place, under a write lease (fcntl(2), F_SETLEASE):
 * the kernel grants a lease only while no other process has the file open, and delays each open(2) until the lease is released.
 * Some files have no leases (NFS, FUSE, the file of another user). bidctl reads the file once more right before it writes. Without
 * a lease, perf's definitions or bidctl's may be lost in the moment between both.
 *
 * Returns 0, the result of @edit, or
 *   -ENOENT	the store lacks the build
 *   -EBUSY	another process had the file open for about 2 s, for reading or writing
 *   -EBADMSG	the text is not in perf's format
 *   other	as open(2), read(2) and write(2)
 */
int ctl_probe_edit(struct bid_store *store, const struct bid_id *id, ctl_probe_edit_fn edit, void *user, bool dry_run);

/* Read the current definitions of @id, for the caller to release. Errors as of bid_store_find(), and ctl_probe_file_parse(). */
int ctl_probe_read(struct bid_store *store, const struct bid_id *id, struct ctl_probe_file *ret_file);

#endif
