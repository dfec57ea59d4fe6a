/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Changes of probe definitions that perf may be reading or writing at the same time. */
#ifndef BID_CTL_PROBE_EDIT_H
#define BID_CTL_PROBE_EDIT_H

#include "api/store.h"
#include "ctl/probe_file.h"

/* Write what is to stand in the place of @old to @out. 0, or a negative errno that ends it with nothing changed. */
typedef int (*ctl_probe_edit_fn)(void *user, const struct ctl_probe_file *old, FILE *out);

/*
 * Change the definitions of @id by @edit, which may be called again if somebody else was faster. They begin with what can be made
 * of static probes.
 *
 * perf reads the file, cuts it to nothing and writes it anew, in place and without a lock, so that a new file in the place of the
 * old one would take with it what perf is about to write. Therefore it is written in place here too, under a write lease (fcntl(2),
 * F_SETLEASE): the kernel grants one only while nobody else has the file open, and lets whoever opens it wait until it is given
 * back. Where there are no leases (NFS, FUSE, the file of another user), or others keep it open to read it, as a mount does, it is
 * read once more right before it is written, which leaves a moment in which perf's definitions or these may be lost.
 *
 * Returns 0, what @edit returned, -ENOENT if the build is not in the store, -EBUSY if somebody has had the file open for
 * writing for some seconds, -EBADMSG if what is there cannot be read, or as open(2), read(2), write(2).
 */
int ctl_probe_edit(struct bid_store *store, const struct bid_id *id, ctl_probe_edit_fn edit, void *user);

/* The definitions of @id as they are, for the caller to release. Errors as of bid_store_find(), and ctl_probe_file_parse(). */
int ctl_probe_read(struct bid_store *store, const struct bid_id *id, struct ctl_probe_file *ret_file);

#endif
