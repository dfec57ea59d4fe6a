// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/refetch.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"

struct refetch_answer {
	int event; /* borrowed */
	int error; /* written before the event is signalled */
};

static void take_answer(void *user, const struct bid_result *result)
{
	struct refetch_answer *answer = user;

	answer->error = result->error;
	eventfd_write(answer->event, 1);
}

int ctl_refetch(struct bid_broker *broker, const struct bid_request *request)
{
	bid_auto_fd int event = eventfd(0, EFD_CLOEXEC);
	struct refetch_answer answer = { .event = event };
	eventfd_t count;
	uint64_t handle;
	int r;

	if (event < 0)
		return -errno;
	r = bid_broker_handle(broker, take_answer, &answer, &handle);
	if (r < 0)
		return r;
	bid_broker_fetch(broker, handle, request);
	while (eventfd_read(event, &count) < 0)
		if (errno != EINTR)
			return -errno;
	return answer.error;
}
