// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/wait.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct wait {
	fuse_req_t req; /* not yet answered */
	struct bid_call call; /* holds a reference to its detail */
	bid_wait_fn answer;
};

static void finish(struct wait *wait, int error, struct bid_file *file)
{
	wait->answer(wait->req, &wait->call, error, file);
	bid_request_release(&wait->call.artifact);
	free(wait);
}

static void over(void *user, const struct bid_result *result)
{
	struct wait *wait = user;
	struct bid_file none = BID_FILE_NONE;

	finish(wait, result->error, result->error == 0 ? result->file : &none);
}

/*
 * libfuse may call this while the request is being answered, so all it gets is the ticket's number, not a pointer to anything
 * that may be gone. If it is called before the wait began, the broker remembers.
 */
static void interrupted(fuse_req_t req, void *data)
{
	bid_broker_cancel(bid_fs_of(req)->broker, (uint64_t)(uintptr_t)data);
}

static int ask(struct wait *wait, const struct bid_request *artifact)
{
	struct bid_fs *fs = bid_fs_of(wait->req);
	uint64_t ticket;
	int r = bid_broker_ticket(fs->broker, over, wait, &ticket);

	if (r < 0)
		return r;
	/* in this order: once it is materialising, the request may be answered and gone at any moment */
	fuse_req_interrupt_func(wait->req, interrupted, (void *)(uintptr_t)ticket);
	bid_broker_fetch(fs->broker, ticket, artifact);
	return 0;
}

/* Have the broker fetch the artifact of @call, and answer then. */
static void fetch(fuse_req_t req, const struct bid_call *call, bid_wait_fn answer)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_file file = BID_FILE_NONE;
	struct bid_call local = *call;
	struct wait *wait;
	int r;

	/* not for a read, which is of something that was found before and has gone since */
	if (call->size == 0 && !bid_budget_take(&fs->budget, fuse_req_ctx(req)->uid, bid_clock_ms())) {
		answer(req, &local, -EHOSTUNREACH, &file);
		return;
	}
	wait = malloc(sizeof(*wait));
	if (!wait) {
		answer(req, &local, -ENOMEM, &file);
		return;
	}
	*wait = (struct wait){ .req = req, .call = local, .answer = answer };
	wait->call.artifact = bid_request_keep(&local.artifact);
	r = ask(wait, &local.artifact);
	if (r < 0)
		finish(wait, r, &file);
}

void bid_wait(fuse_req_t req, const struct bid_call *call, bid_wait_fn answer)
{
	struct bid_file file = BID_FILE_NONE;
	struct bid_call local = *call;
	struct bid_fs *fs = bid_fs_of(req);
	int r = bid_broker_find(fs->broker, &local.artifact, &file, NULL);

	/* in no_open mode the kernel tells of no close, so sections that nobody reads any more fill the memory */
	if (r == -ENOMEM && bid_fds_drop_memory(fs->fds))
		r = bid_broker_find(fs->broker, &local.artifact, &file, NULL);
	if (r == -EINPROGRESS)
		fetch(req, &local, answer);
	else
		answer(req, &local, r, &file);
	bid_file_release(&file);
}
