/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A store covered by a mount of bidfs: the store's path leads to the mount. */
#ifndef BID_CTL_COVERING_MOUNT_H
#define BID_CTL_COVERING_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "api/store.h"

/* Does a mount over @path have a silent daemon? Requests into such a mount wait without an end. */
bool ctl_covering_mount_is_silent(const char *path);

/*
 * Return the state that the mount at @path reports, for the caller to release: an empty object if the mount reports none. Returns
 * NULL without a mount.
 */
json_t *ctl_covering_mount_state(const char *path);

/*
 * Read buildid/ID/info of @id from the mount at @path, for the caller to free; open the file of @artifact, which has a subpath.
 * Both block as long as the mount does, for its servers too. Return -ENOENT without a mount, or as open(2).
 */
int ctl_covering_mount_info(const char *path, const struct bid_id *id, char **ret_text);
int ctl_covering_mount_open(const char *path, const struct bid_artifact *artifact, struct bid_file *ret_file);

/*
 * Return the last responses of the servers to @id, as the mount at @path reports them: an array (docs/FORMAT.md), empty without a
 * report. The caller releases the array.
 */
json_t *ctl_covering_mount_responses(const char *path, const struct bid_id *id);

/*
 * Have the mount at @path retry @artifact at its servers; with @accept the mount takes bytes that differ from the first download.
 * Returns 0, also without a mount or without anything to download; or as setxattr(2).
 */
int ctl_covering_mount_refresh(const char *path, const struct bid_artifact *artifact, bool accept);

/*
 * Wait after ctl_covering_mount_refresh() until the kernel drops the absent names that it caches for the mount at @path. Returns at
 * once without a mount.
 */
void ctl_covering_mount_wait(const char *path);

/* Return why the mount refuses a command with @error, and the remedy; NULL for any other error. Static. */
const char *ctl_covering_mount_refusal(int error);

/* Is the mount with @state (may be NULL) offline, although it has servers? Then CTL_COVER_OFFLINE is the message. */
bool ctl_covering_mount_is_offline(const json_t *state);

#define CTL_COVER_OFFLINE "not here, and the mount that covers the store is offline - 'bidctl offline off' ends that"

#endif
