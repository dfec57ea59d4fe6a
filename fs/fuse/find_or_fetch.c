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

/* The broker may have freed the waiting request, therefore the id. An interrupt before bid_broker_fetch() makes that call end at once. */
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
	/* the fetch may answer the request, and free @waiting, at any moment */
	fuse_req_interrupt_func(waiting->req, on_interrupt, (void *)(uintptr_t)waiter_id);
	bid_broker_fetch(fs->broker, waiter_id, artifact);
	return 0;
}

static void fetch_artifact(fuse_req_t req, const struct bid_wanted *wanted, bid_finish_fn finish)
{
	struct bid_fs *fs = bid_fs_of(req);
	bid_cleanup(bid_file_release) struct bid_file stripped = BID_FILE_NONE;
	struct bid_file none = BID_FILE_NONE;
	struct bid_wanted local = *wanted;
	struct waiting_request *waiting;
	int r;

	/* a READ of no_open mode has a size; its LOOKUP took a token */
	if (wanted->size == 0 && !bid_ratelimit_take(&fs->ratelimit, fuse_req_ctx(req)->uid, bid_clock_ms())) {
		r = bid_store_find(fs->store, &local.artifact, BID_NEVER_DERIVE, &stripped);
		finish(req, &local, r == 0 ? 0 : -EHOSTUNREACH, &stripped);
		return;
	}
	waiting = malloc(sizeof(*waiting));
	if (!waiting) {
		finish(req, &local, -ENOMEM, &none);
		return;
	}
	*waiting = (struct waiting_request){ .req = req, .wanted = local, .finish = finish };
	waiting->wanted.artifact = bid_artifact_copy(&local.artifact);
	r = submit_request(waiting, &local.artifact);
	if (r < 0)
		finish_request(waiting, r, &none);
}

void bid_find_or_fetch(fuse_req_t req, const struct bid_wanted *wanted, bid_finish_fn finish)
{
	struct bid_file file = BID_FILE_NONE;
	struct bid_wanted local = *wanted;
	struct bid_fs *fs = bid_fs_of(req);
	int r = bid_broker_look_up(fs->broker, &local.artifact, &file, NULL);

	if (r == -EINPROGRESS)
		fetch_artifact(req, &local, finish);
	else
		finish(req, &local, r, &file);
	bid_file_release(&file);
}
