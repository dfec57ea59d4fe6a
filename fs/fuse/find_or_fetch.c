// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/find_or_fetch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* A request of the kernel that waits for the broker. */
struct pending_reply {
	fuse_req_t req; /* unanswered */
	struct bid_pending pending; /* holds a reference to its subpath */
	bid_finish_fn finish;
};

static void end_reply(struct pending_reply *reply, int error, struct bid_file *file)
{
	reply->finish(reply->req, &reply->pending, error, file);
	bid_artifact_release(&reply->pending.artifact);
	free(reply);
}

static void on_fetched(void *user, const struct bid_result *result)
{
	bid_cleanup(bid_file_release) struct bid_file again = BID_FILE_NONE;
	struct pending_reply *reply = user;
	struct bid_fs *fs = bid_fs_of(reply->req);
	int error = result->error;

	/* in no_open mode no RELEASE frees what is in memory */
	if (error == -ENOMEM && bid_fd_cache_drop_memory(fs->fd_cache))
		error = bid_store_find(fs->store, &reply->pending.artifact, BID_MAY_DERIVE, &again);
	end_reply(reply, error, result->error == 0 ? result->file : &again);
}

/* The reply may be freed already, therefore the id. An interrupt before bid_broker_fetch() makes that call end at once. */
static void on_interrupt(fuse_req_t req, void *waiter_id)
{
	bid_broker_cancel(bid_fs_of(req)->broker, (uint64_t)(uintptr_t)waiter_id);
}

static int submit_request(struct pending_reply *reply, const struct bid_artifact *artifact)
{
	struct bid_fs *fs = bid_fs_of(reply->req);
	uint64_t waiter_id;
	int r = bid_broker_new_waiter(fs->broker, on_fetched, reply, &waiter_id);

	if (r < 0)
		return r;
	/* the fetch may answer the request, and free @reply, at any moment */
	fuse_req_interrupt_func(reply->req, on_interrupt, (void *)(uintptr_t)waiter_id);
	bid_broker_fetch(fs->broker, waiter_id, artifact);
	return 0;
}

static void fetch_artifact(fuse_req_t req, const struct bid_pending *pending, bid_finish_fn finish)
{
	struct bid_fs *fs = bid_fs_of(req);
	bid_cleanup(bid_file_release) struct bid_file stripped = BID_FILE_NONE;
	struct bid_file none = BID_FILE_NONE;
	struct bid_pending local = *pending;
	struct pending_reply *reply;
	int r;

	/* a READ of no_open mode has a size; its LOOKUP took a token */
	if (pending->size == 0 && !bid_ratelimit_take(&fs->ratelimit, fuse_req_ctx(req)->uid, bid_clock_ms())) {
		r = bid_store_find(fs->store, &local.artifact, BID_NEVER_DERIVE, &stripped);
		finish(req, &local, r == 0 ? 0 : -EHOSTUNREACH, &stripped);
		return;
	}
	reply = malloc(sizeof(*reply));
	if (!reply) {
		finish(req, &local, -ENOMEM, &none);
		return;
	}
	*reply = (struct pending_reply){ .req = req, .pending = local, .finish = finish };
	reply->pending.artifact = bid_artifact_copy(&local.artifact);
	r = submit_request(reply, &local.artifact);
	if (r < 0)
		end_reply(reply, r, &none);
}

void bid_find_or_fetch(fuse_req_t req, const struct bid_pending *pending, bid_finish_fn finish)
{
	struct bid_file file = BID_FILE_NONE;
	struct bid_pending local = *pending;
	struct bid_fs *fs = bid_fs_of(req);
	int r = bid_broker_look_up(fs->broker, &local.artifact, &file, NULL);

	if (r == -EINPROGRESS)
		fetch_artifact(req, &local, finish);
	else
		finish(req, &local, r, &file);
	bid_file_release(&file);
}
