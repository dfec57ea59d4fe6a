// SPDX-License-Identifier: LGPL-2.1-or-later
/* The publishers: commits wait for the disk, which the thread of a source must not. */
#include "broker/download.h"

#include <errno.h>
#include <stdio.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/log.h"

/* What the source said, in the light of what the receiver found. */
static enum bid_outcome outcome_of(struct bid_ask *ask, const char **ret_text)
{
	const struct bid_said *said = &ask->said;

	if (ask->looped && said->outcome == BID_OUTCOME_CANCELLED) {
		*ret_text = "asks this mount for the same";
		return BID_OUTCOME_UNREACHABLE;
	}
	if (ask->receive_error == 0) {
		*ret_text = said->text;
		return said->outcome;
	}
	*ret_text = ask->reason;
	/* an artifact may be as large; but to find that out costs as much each time */
	if (ask->endless)
		return BID_OUTCOME_REJECTED;
	switch (ask->receive_error) {
	case -EBADMSG:
		return BID_OUTCOME_REJECTED;
	case -EFBIG:
		return BID_OUTCOME_TOO_LARGE;
	default:
		return BID_OUTCOME_FAILED;
	}
}

static struct bid_origin origin_of(const struct bid_ask *ask)
{
	return (struct bid_origin){
		.how = "fetched",
		.server = ask->flight->broker->asked[ask->source].source->name,
		.url = ask->said.url,
		.file = ask->said.file,
		.archive = ask->said.archive,
		.ima_signature = ask->said.ima_signature,
		.modified = ask->said.modified,
	};
}

/* Commit what was received. Returns found, rejected or failed; with failed, @ret_error is set. */
static enum bid_outcome publish(struct bid_ask *ask, struct bid_file *ret_file, const char **ret_text, int *ret_error)
{
	struct bid_origin origin = origin_of(ask);
	int r = 0;

	/* a source that found it, but sent no byte: the commit will say what is wrong with that */
	if (!ask->txn)
		r = bid_ask_begin_body(ask, 0);
	if (r == 0 && ask->size != BID_SIZE_UNKNOWN && ask->size != ask->received) {
		snprintf(ask->reason, sizeof(ask->reason), "%llu bytes, of %llu that were announced",
			 (unsigned long long)ask->received, (unsigned long long)ask->size);
		*ret_text = ask->reason;
		return BID_OUTCOME_REJECTED;
	}
	if (r == 0)
		r = bid_txn_commit(ask->txn, &origin, ret_file);
	if (r == 0)
		return BID_OUTCOME_FOUND;

	if (r == -EBADMSG || r == -ESTALE) {
		const char *reason = bid_txn_reason(ask->txn);

		ask->changed = r == -ESTALE;
		snprintf(ask->reason, sizeof(ask->reason), "%s", *reason ? reason : bid_strerror(r));
		*ret_text = ask->reason;
		return BID_OUTCOME_REJECTED;
	}
	*ret_error = bid_local_error(r);
	*ret_text = bid_strerror(*ret_error);
	return BID_OUTCOME_FAILED;
}

static void note_fetched(const struct bid_ask *ask)
{
	struct bid_flight *flight = ask->flight;
	struct bid_broker *broker = flight->broker;
	char name[BID_NAME_MAX];

	atomic_fetch_add(&broker->counts.fetched, 1);
	bid_absences_forget(broker->absences, &flight->request, broker->asked[ask->source].source->name);
	bid_absences_forget(broker->too_large, &flight->request, "");
	bid_absences_forget(broker->accepted, &flight->request, "");
	bid_info("fetched %llu bytes from %s: '%s'", (unsigned long long)ask->received, broker->asked[ask->source].source->name,
		 bid_request_name(&flight->request, name));
}

/*
 * Remember a "no". Not to a section: debuginfod of elfutils 0.192 and later says "no" to what it has just served, as long as it has
 * the section in its cache.
 */
static void note_absent(const struct bid_ask *ask)
{
	const struct bid_request *request = &ask->flight->request;
	struct bid_broker *broker = ask->flight->broker;

	if (request->kind != BID_KIND_SECTION &&
	    bid_absences_add(broker->absences, request, broker->asked[ask->source].source->name) < 0)
		bid_warning("out of memory: what is absent is not remembered as that");
}

/*
 * That a source cannot be asked this, will not say, or sends something else, tells nothing of the artifact, and may be over with
 * its next update, or once a proxy is set right: it is kept, in @said, from being asked again and again, but never for longer than
 * at first, and not beyond this program.
 */
static void note_useless(const struct bid_ask *ask, struct bid_absences *said)
{
	const struct bid_request *request = &ask->flight->request;
	const char *name = ask->flight->broker->asked[ask->source].source->name;

	bid_absences_forget(said, request, name);
	if (bid_absences_add(said, request, name) < 0)
		bid_warning("out of memory: what a server cannot be asked is not remembered");
}

/* What was refused is worth a look: by whom it was sent, and what it is. */
static void keep_evidence(struct bid_ask *ask, const char *reason)
{
	struct bid_origin origin = origin_of(ask);
	struct bid_evidence evidence = { .origin = &origin, .reason = reason, .announced = ask->size };
	int r = ask->txn && ask->received > 0 ? bid_txn_quarantine(ask->txn, &evidence) : 0;

	if (r < 0)
		bid_debug("%s: no evidence is kept of what %s sent", bid_strerror(r), origin.server);
}

/* The source gave an answer, and the flight is still for it. Frees @ask. */
static void decide(struct bid_ask *ask, enum bid_outcome outcome, const char *text)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_flight *flight = ask->flight;
	struct bid_id alt = { 0 };
	int error = ask->receive_error;
	bool over;

	if (outcome == BID_OUTCOME_FOUND)
		outcome = publish(ask, &file, &text, &error);
	if (outcome == BID_OUTCOME_REJECTED)
		keep_evidence(ask, text);
	bid_flight_verdict(flight, ask, outcome, text);
	if (outcome == BID_OUTCOME_FOUND) {
		note_fetched(ask);
		alt = bid_txn_alt(ask->txn);
	} else if (outcome == BID_OUTCOME_ABSENT) {
		note_absent(ask);
	} else if (outcome == BID_OUTCOME_UNSUPPORTED) {
		note_useless(ask, flight->broker->unsupported);
	} else if (outcome == BID_OUTCOME_REJECTED) {
		note_useless(ask, flight->broker->wrong);
	} else if (outcome == BID_OUTCOME_REFUSED && ask->said.lasting) {
		note_useless(ask, flight->broker->refused);
	}
	/* our own disk's trouble ends it, too: another source's bytes would meet the same; but one may announce more than it has */
	over = outcome == BID_OUTCOME_FOUND || (outcome == BID_OUTCOME_FAILED && error != 0 && !bid_ask_has_no_room(ask));
	/* while the ask is still in it, or whoever looks at the race next would find it at its end */
	if (over)
		bid_flight_claim(flight);
	if (outcome == BID_OUTCOME_FOUND) {
		/* of a small file this is known no sooner */
		bid_race_won(ask, true);
		bid_flight_verdict_overtaken(flight, ask->source);
	}
	bid_race_leave(ask, true);
	if (over)
		bid_flight_end(flight, error, &file);
	else
		bid_race_step(flight);
	if (alt.len > 0)
		bid_flight_fetch_along(flight, &alt);
}

/* @useless: the flight is over, or nobody wants it. */
static void take(struct bid_ask *ask, bool useless)
{
	struct bid_flight *flight = ask->flight;
	const char *text;
	enum bid_outcome outcome = outcome_of(ask, &text);

	/* one that has lost may have come to its end all the same: what it says counts */
	if (!useless && (!ask->lost || outcome != BID_OUTCOME_CANCELLED)) {
		decide(ask, outcome, text);
		return;
	}
	bid_ask_count(ask, BID_OUTCOME_CANCELLED);
	bid_race_leave(ask, false);
	bid_race_step(flight);
}

/* How many bytes are to be examined and brought to the disk? To evict takes longer than any. */
static uint64_t work_of(const struct bid_ask *ask)
{
	if (ask->room != BID_ASK_ROOM_ENOUGH)
		return UINT64_MAX;
	return ask->said.outcome == BID_OUTCOME_FOUND && ask->receive_error == 0 ? ask->received : 0;
}

/* Under the lock. */
static struct bid_ask *next_job(const struct bid_publisher *publisher)
{
	struct bid_ask *ask;

	for (ask = TAILQ_FIRST(&publisher->broker->jobs); ask; ask = TAILQ_NEXT(ask, job))
		if ((ask->room != BID_ASK_ROOM_ENOUGH || !ask->flight->decided_on) && work_of(ask) <= publisher->largest)
			return ask;
	return NULL;
}

void *bid_broker_publish(void *user)
{
	const struct bid_publisher *publisher = user;
	struct bid_broker *broker = publisher->broker;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		struct bid_ask *ask = next_job(publisher);
		struct bid_flight *flight;
		bool useless;

		if (!ask) {
			pthread_cond_wait(&broker->has_job, &broker->lock);
			continue;
		}
		TAILQ_REMOVE(&broker->jobs, ask, job);
		if (ask->room != BID_ASK_ROOM_ENOUGH) {
			bid_ask_make_room(ask);
			continue;
		}
		flight = ask->flight;
		flight->decided_on = true;
		bid_flight_ref(flight);
		useless = flight->phase != BID_PHASE_FLYING || flight->cancelled || broker->ending;
		pthread_mutex_unlock(&broker->lock);
		take(ask, useless);
		pthread_mutex_lock(&broker->lock);
		flight->decided_on = false;
		bid_flight_unref(flight);
		/* what waited for this may be for another to do */
		if (!TAILQ_EMPTY(&broker->jobs))
			pthread_cond_broadcast(&broker->has_job);
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}
