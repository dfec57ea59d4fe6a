// SPDX-License-Identifier: LGPL-2.1-or-later
/* The end of transfers that nobody wants any more, and what is still to be learned of their servers. */
#include "fetch/network.h"

#include "base/clock.h"

/*
 * Does the request of @transfer go on until its server has answered, as its witness? Somebody has to see that a server is dead,
 * though each time another delivers before, or the reader does not wait: or it is asked anew for everything. One at a time is
 * enough. Under the lock.
 */
static bool becomes_witness(const struct bid_transfer *transfer)
{
	const struct bid_server *server = transfer->server;
	bool unanswered = transfer->phase == BID_PHASE_CONNECTING || transfer->phase == BID_PHASE_WAITING;
	bool under_way = transfer->place == BID_PLACE_ACTIVE && unanswered && transfer->judgement.outcome == BID_OUTCOME_NONE;

	return under_way && !transfer->witness && !transfer->silent && !server->closing &&
	       (transfer->probe || server->witnesses == 0);
}

/* Under the lock. */
static void take_from_queue(struct bid_transfer *transfer)
{
	struct bid_server *server = transfer->server;

	if (transfer->place == BID_PLACE_WAITING) {
		TAILQ_REMOVE(&server->waiting, transfer, queue);
		return;
	}
	TAILQ_REMOVE(&server->fetch->active, transfer, queue);
	*(transfer->witness ? &server->witnesses : &server->running) -= 1;
}

/* Move those that are marked to @cancelled, or to @witnesses. Under the lock. */
static void take_marked(struct bid_fetch *fetch, struct bid_transfer_list *cancelled, struct bid_transfer_list *witnesses)
{
	struct bid_transfer *transfer;

	if (!fetch->cancelling)
		return;
	fetch->cancelling = false;
	for (transfer = TAILQ_FIRST(&fetch->live); transfer; transfer = TAILQ_NEXT(transfer, live)) {
		if (!transfer->cancelled)
			continue;
		if (transfer->place == BID_PLACE_ARRIVED) {
			/* since collect(): the next round is for it */
			fetch->cancelling = true;
			continue;
		}
		take_from_queue(transfer);
		if (becomes_witness(transfer)) {
			/* so that nobody can cancel it but the end of the server */
			transfer->cancelled = false;
			transfer->number = 0;
			transfer->witness = true;
			transfer->server->witnesses++;
			TAILQ_INSERT_TAIL(witnesses, transfer, queue);
		} else {
			TAILQ_INSERT_TAIL(cancelled, transfer, queue);
		}
	}
}

static const struct bid_judgement cancelled_judgement = { .outcome = BID_OUTCOME_CANCELLED, .text = "cancelled" };

static void end(struct bid_transfer *transfer)
{
	struct bid_server *server = transfer->server;

	bid_transfer_stop(transfer);
	transfer->judgement = cancelled_judgement;
	bid_server_note_end(server, transfer, bid_clock_ms());
	if (bid_network_finish(transfer))
		bid_network_dispatch(server);
}

static void keep_as_witness(struct bid_fetch *fetch, struct bid_transfer *witness)
{
	witness->judgement = cancelled_judgement;
	bid_network_tell(witness);
	witness->judgement = (struct bid_judgement){ 0 };
	TAILQ_INSERT_TAIL(&fetch->active, witness, queue);
	bid_network_dispatch(witness->server);
}

void bid_network_cancel_marked(struct bid_fetch *fetch)
{
	struct bid_transfer_list cancelled = TAILQ_HEAD_INITIALIZER(cancelled), witnesses = TAILQ_HEAD_INITIALIZER(witnesses);
	struct bid_transfer *transfer;

	pthread_mutex_lock(&fetch->lock);
	take_marked(fetch, &cancelled, &witnesses);
	pthread_mutex_unlock(&fetch->lock);

	while ((transfer = TAILQ_FIRST(&witnesses))) {
		TAILQ_REMOVE(&witnesses, transfer, queue);
		keep_as_witness(fetch, transfer);
	}
	while ((transfer = TAILQ_FIRST(&cancelled))) {
		TAILQ_REMOVE(&cancelled, transfer, queue);
		end(transfer);
	}
}

/* Under the lock. */
static void mark_cancelled(struct bid_server *server, uint64_t number)
{
	struct bid_transfer *transfer;

	for (transfer = TAILQ_FIRST(&server->fetch->live); transfer; transfer = TAILQ_NEXT(transfer, live)) {
		if (transfer->server != server || (number && transfer->number != number))
			continue;
		transfer->cancelled = true;
		server->fetch->cancelling = true;
		if (number)
			return;
	}
}

void bid_network_cancel(struct bid_server *server, uint64_t number)
{
	struct bid_fetch *fetch = server->fetch;

	pthread_mutex_lock(&fetch->lock);
	mark_cancelled(server, number);
	pthread_mutex_unlock(&fetch->lock);
	curl_multi_wakeup(fetch->multi);
}

void bid_network_drain(struct bid_server *server)
{
	struct bid_fetch *fetch = server->fetch;

	pthread_mutex_lock(&fetch->lock);
	server->closing = true;
	mark_cancelled(server, 0);
	curl_multi_wakeup(fetch->multi);
	while (server->live)
		pthread_cond_wait(&fetch->settled, &fetch->lock);
	pthread_mutex_unlock(&fetch->lock);
}
