/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How one artifact was looked for: what bidctl get says with --verbose, and if it was looked for in vain. */
#ifndef BID_CTL_STORY_H
#define BID_CTL_STORY_H

#include <jansson.h>

#include "api/broker.h"

struct ctl_story {
	int stored; /* what bid_store_find() said at the beginning */
	unsigned remembered_s; /* for so long the servers' earlier "no" stands, none having been asked; else 0 */
	unsigned waited_ms; /* for another process that fetched it */
	bool changed; /* somebody has other bytes than were fetched first, which --accept would take */
	struct ctl_answer *answers; /* of the servers that were asked; owned */
	size_t n;
	bool of_mount; /* these are those of the mount over the store, and what they said last, whenever that was */
};

void ctl_story_release(struct ctl_story *story);

/* Copy what the servers said out of @result. What memory does not suffice for is left out. */
void ctl_story_take(struct ctl_story *story, const struct bid_result *result);

/*
 * The same of @responses, an array as of ctl_cover_responses(), as far as it is of @request.
 */
void ctl_story_take_responses(struct ctl_story *story, const json_t *responses, const struct bid_request *request);

/* Did each of so many servers say no, and is to be asked of it later only? */
bool ctl_story_all_said_no(const struct ctl_story *story, size_t servers);

/* An error message for each server that was asked, or each file that it was asked for in place of a section. */
void ctl_story_complain(const struct ctl_story *story);

/* What the servers said, as an array. */
json_t *ctl_story_servers(const struct ctl_story *story);

/*
 * Tell on standard error, step by step, how @request was looked for in @store and what came of it: @error, or the file at @path.
 */
void ctl_story_tell(const struct ctl_story *story, struct bid_store *store, const struct bid_request *request, int error,
		    const char *path);

#endif
