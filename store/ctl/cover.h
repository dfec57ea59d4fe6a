/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A store that a mount of bidfs covers: what its path leads to is the mount. */
#ifndef BID_CTL_COVER_H
#define BID_CTL_COVER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "api/store.h"

/* Is there a mount over @path whose daemon does not answer? Then whatever asks for something in it waits without an end. */
bool ctl_cover_is_silent(const char *path);

/* What the mount at @path says of itself, for the caller to release: an empty object if it does not. NULL if there is none. */
json_t *ctl_cover_state(const char *path);

/*
 * What the mount at @path tells of @id in buildid/ID/info, for the caller to free, and the file of @request, which has a detail.
 * -ENOENT if there is no mount, or as open(2). Both wait as long as the mount does, for its servers too.
 */
int ctl_cover_info(const char *path, const struct bid_id *id, char **ret_text);
int ctl_cover_open(const char *path, const struct bid_request *request, struct bid_file *ret_file);

/*
 * What the mount at @path tells that its servers said of @id last, for the caller to release: an array, see docs/FORMAT.md. An
 * empty one if it tells nothing.
 */
json_t *ctl_cover_responses(const char *path, const struct bid_id *id);

/*
 * Tell the mount at @path to have its servers asked for @request again, and with @accept to take other bytes than were fetched
 * first. Returns 0, also if there is no mount, or nothing to ask servers for; or as setxattr(2).
 */
int ctl_cover_refresh(const char *path, const struct bid_request *request, bool accept);

/*
 * Wait after ctl_cover_refresh() until the kernel asks the mount at @path again for names that were absent. Does not wait if there
 * is no mount.
 */
void ctl_cover_wait(const char *path);

/* Why it does not let itself be told, and what to do about it; NULL if @error is some other trouble. Static. */
const char *ctl_cover_refusal(int error);

/* Was the mount that says @state, which may be NULL, told to ask none of its servers? Then that is what to tell. */
bool ctl_cover_is_offline(const json_t *state);

#define CTL_COVER_OFFLINE "not here, and the mount that covers the store is offline ('bidctl offline off' ends that)"

/*
 * Had the mount that says @state (not NULL) no trouble with its servers from @since on, in seconds since the epoch, and was it done
 * with @request? Then what it did not have is nowhere; else nobody knows, though the mount may call it absent (mount.bidfs(8),
 * "errors=").
 */
bool ctl_cover_is_sure(const json_t *state, const struct bid_request *request, int64_t since);

#endif
