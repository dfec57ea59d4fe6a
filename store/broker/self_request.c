// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A loop: a server requests from this broker the artifact that the broker requests from it. Examples are two mounts that name each
 * other, or a mount and a debuginfod. Then each waits for the other's response.
 * A request does not show its origin, and the kernel holds back a second request for a name. Therefore the broker sends a marker to
 * a server without a response for hedge_ms: a request for an id made for this server. The arrival of that id here proves that the
 * server leads back. Its attempts without a header then end as unavailable at once, and those of the next LOOP_KNOWN_MS after
 * hedge_ms.
 */
#include "broker/download.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

enum {
	LOOP_KNOWN_MS = 120000,
	LOOP_MARKER_MS = 60000, /* between two markers of a server */
	ID_LEN = 20,
};

/* first bytes of the ids, recognisable in a server's log */
static const char prefix[10] = "bidfs-loop";

int bid_self_request_init(struct bid_self_request *loop)
{
	size_t len = ID_LEN - sizeof(prefix);

	*loop = (struct bid_self_request){ .id.len = ID_LEN, .recognised_ms = -LOOP_KNOWN_MS, .marker_sent_ms = -LOOP_MARKER_MS };
	memcpy(loop->id.bytes, prefix, sizeof(prefix));
	return getrandom(loop->id.bytes + sizeof(prefix), len, 0) == (ssize_t)len ? 0 : -errno;
}

/* No body follows. */
static int refuse_header(void *user, uint64_t size)
{
	return -ECANCELED;
}

static void end_marker(void *user, const struct bid_server_report *report)
{
}

/* Request the id of @state. Under the lock. */
static void send_marker(struct bid_server_state *state, int64_t now)
{
	static const struct bid_receiver receiver = { .header = refuse_header, .done = end_marker };
	struct bid_artifact artifact = { .id = state->loop.id, .kind = BID_KIND_ELF };

	state->loop.marker_sent_ms = now;
	state->server->ops->request(state->server, &artifact, &receiver, &state->loop);
}

uint64_t bid_self_request_look(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	int64_t hedge_ms = broker->config.hedge_ms, now = bid_clock_ms();
	uint64_t in_loop = 0;

	for (size_t i = 0; i < download->machine.n && broker->config.detect_loops; i++) {
		const struct bid_candidate *candidate = &download->machine.candidates[i];
		struct bid_server_state *state = candidate->from;
		struct bid_attempt *attempt = candidate->attempt;

		/* a server that leads back still delivers its own artifacts */
		if (candidate->state != BID_CANDIDATE_SENT || now - attempt->started_ms < hedge_ms)
			continue;
		if (now - state->loop.recognised_ms < LOOP_KNOWN_MS) {
			attempt->in_loop = true;
			in_loop |= UINT64_C(1) << i;
		} else if (now - state->loop.marker_sent_ms >= LOOP_MARKER_MS && !broker->offline) {
			send_marker(state, now);
		}
	}
	return in_loop;
}

bool bid_self_request_recognise(struct bid_broker *broker, const struct bid_id *id)
{
	for (size_t i = 0; i < broker->n_servers; i++) {
		struct bid_self_request *loop = &broker->servers[i].loop;

		if (!bid_id_equal(&loop->id, id))
			continue;
		pthread_mutex_lock(&broker->lock);
		loop->recognised_ms = bid_clock_ms();
		pthread_mutex_unlock(&broker->lock);
		return true;
	}
	return false;
}
