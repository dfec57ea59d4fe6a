// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/find_or_fetch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* A request of the kernel that waits for the broker. */
struct waiting_request {
	fuse_req_t req; /* unanswered */
	struct bid_wanted wanted; /* holds a reference to its subpath */
	bid_finish_fn finish;
};

static void finish_request(struct waiting_request *waiting, int error, struct bid_file *file)
{
	waiting->finish(waiting->req, &waiting->wanted, error, file);
	bid_artifact_release(&waiting->wanted.artifact);
	free(waiting);
}

static void on_fetched(void *user, const struct bid_result *result)
{
	bid_cleanup(bid_file_release) struct bid_file again = BID_FILE_NONE;
	struct waiting_request *waiting = user;
	struct bid_fs *fs = bid_fs_of(waiting->req);
	int error = result->error;

	/* in no_open mode no RELEASE frees what is in memory */
	if (error == -ENOMEM && bid_fd_cache_drop_memory(fs->fd_cache))
		error = bid_store_find(fs->store, &waiting->wanted.artifact, BID_MAY_DERIVE, &again);
	finish_request(waiting, error, result->error == 0 ? result->file : &again);
}

/* The waiting request may be freed already, so the id. An interrupt before bid_broker_fetch() makes that call end at once. */
static void on_interrupt(fuse_req_t req, void *waiter_id)
{
	bid_broker_cancel(bid_fs_of(req)->broker, (uint64_t)(uintptr_t)waiter_id);
}

static int submit_request(struct waiting_request *waiting, const struct bid_artifact *artifact)
{
	struct bid_fs *fs = bid_fs_of(waiting->req);
	uint64_t waiter_id;
	int r = bid_broker_new_waiter(fs->broker, on_fetched, waiting, &waiter_id);

	if (r < 0)
		return r;
	/* the fetch may answer the request, and free @waiting, at any moment: @artifact is the caller's */
	fuse_req_interrupt_func(waiting->req, on_interrupt, (void *)(uintptr_t)waiter_id);
	bid_broker_fetch(fs->broker, waiter_id, artifact);
	return 0;
}

static void fetch_artifact(fuse_req_t req, struct bid_wanted *wanted, bid_finish_fn finish)
{
	struct bid_fs *fs = bid_fs_of(req);
	bid_cleanup(bid_file_release) struct bid_file stripped = BID_FILE_NONE;
	struct bid_file none = BID_FILE_NONE;
	struct waiting_request *waiting;
	int r;

	/* the LOOKUP before a READ took a token */
	if (!wanted->is_read && !bid_ratelimit_take(&fs->ratelimit, fuse_req_ctx(req)->uid, bid_clock_ms())) {
		r = bid_store_find(fs->store, &wanted->artifact, BID_NEVER_DERIVE, &stripped);
		finish(req, wanted, r == 0 ? 0 : -EHOSTUNREACH, &stripped);
		return;
	}
	waiting = malloc(sizeof(*waiting));
	if (!waiting) {
		finish(req, wanted, -ENOMEM, &none);
		return;
	}
	*waiting = (struct waiting_request){ .req = req, .wanted = *wanted, .finish = finish };
	waiting->wanted.artifact = bid_artifact_copy(&wanted->artifact);
	r = submit_request(waiting, &wanted->artifact);
	if (r < 0)
		finish_request(waiting, r, &none);
}

void bid_find_or_fetch(fuse_req_t req, struct bid_wanted *wanted, bid_finish_fn finish)
{
	struct bid_file file = BID_FILE_NONE;
	struct bid_fs *fs = bid_fs_of(req);
	int r = bid_broker_look_up(fs->broker, &wanted->artifact, &file, NULL);

	if (r == -EINPROGRESS)
		fetch_artifact(req, wanted, finish);
	else
		finish(req, wanted, r, &file);
	bid_file_release(&file);
}
