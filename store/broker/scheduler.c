// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/scheduler.h"

#include <stdio.h>
#include <stdlib.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/download.h"
#include "broker/loop.h"
#include "broker/throughput.h"

enum { BROKEN_MAX = 2 }; /* bodies of one source, of which another was faster: then it is not asked again */

void bid_endings_add(struct bid_endings *endings, const struct bid_ask *ask)
{
	endings->of[endings->n].source = ask->flight->broker->asked[ask->source].source;
	endings->of[endings->n++].transfer = ask->transfer;
}

void bid_endings_cancel(const struct bid_endings *endings)
{
	for (unsigned i = 0; i < endings->n; i++)
		endings->of[i].source->ops->cancel(endings->of[i].source, endings->of[i].transfer);
}

/* The lower, the earlier it is asked. Under the lock. */
enum rank {
	RANK_FAVOURITE, /* delivered last */
	RANK_PLAIN,
	RANK_STRUCK, /* its last answer was a wrong one */
	RANK_COUNT
};

static enum rank rank_of(const struct bid_broker *broker, size_t source)
{
	if (broker->asked[source].stats.strikes > 0)
		return RANK_STRUCK;
	return source == broker->favourite ? RANK_FAVOURITE : RANK_PLAIN;
}

/* For @ttl seconds @outcome is the verdict of @source, as @words say; if that is 0, it has none. Without the lock. */
static bool stands(struct bid_flight *flight, size_t source, unsigned ttl, enum bid_outcome outcome, const char *words)
{
	char text[BID_TEXT_MAX];

	if (ttl == 0)
		return false;
	snprintf(text, sizeof(text), "%s, and is asked again in %u s", words, ttl);
	pthread_mutex_lock(&flight->broker->lock);
	bid_flight_verdict_unasked(flight, source, outcome, text);
	pthread_mutex_unlock(&flight->broker->lock);
	return true;
}

/* Did @source say @outcome a while ago, by @said? Then that is its verdict, and @words say so. Without the lock. */
static bool said_before(struct bid_flight *flight, size_t source, struct bid_absences *said, enum bid_outcome outcome,
			const char *words)
{
	struct bid_broker *broker = flight->broker;
	const char *name = broker->asked[source].source->name;

	if (broker->config.no_negative)
		bid_absences_forget(said, &flight->request, name);
	return stands(flight, source, bid_absences_ttl(said, &flight->request, name), outcome, words);
}

/* Did @source say that it has neither file of the build? Then it has no part of them, and no source file. Without the lock. */
static bool has_no_build(struct bid_flight *flight, size_t source)
{
	struct bid_broker *broker = flight->broker;
	unsigned ttl = broker->config.no_negative ? 0 : bid_broker_build_absent_s(broker, &flight->request, source);

	return stands(flight, source, ttl, BID_OUTCOME_ABSENT, "it has nothing else of this build");
}

/* Is there no use in asking @source, by what it said before? */
static bool is_known(struct bid_flight *flight, size_t source)
{
	struct bid_broker *broker = flight->broker;

	return said_before(flight, source, broker->absences, BID_OUTCOME_ABSENT, "it said so before") ||
	       said_before(flight, source, broker->unsupported, BID_OUTCOME_UNSUPPORTED, "it said so before") ||
	       said_before(flight, source, broker->refused, BID_OUTCOME_REFUSED, "it said so before") ||
	       said_before(flight, source, broker->wrong, BID_OUTCOME_REJECTED, "what it sent was wrong") ||
	       has_no_build(flight, source);
}

void bid_race_line_up(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;

	pthread_mutex_lock(&broker->lock);
	for (enum rank rank = RANK_FAVOURITE; rank < RANK_COUNT; rank++)
		for (size_t source = 0; source < broker->n_sources; source++)
			if (rank_of(broker, source) == rank)
				flight->runners[flight->n_runners++] = (struct bid_runner){ .source = source };
	pthread_mutex_unlock(&broker->lock);

	for (size_t i = 0; i < flight->n_runners; i++)
		if (is_known(flight, flight->runners[i].source))
			flight->runners[i].state = BID_RUNNER_OUT;
}

/* Was the broker told meanwhile to ask nobody? Then that is the verdict of @source. Under the lock. */
static bool is_offline(struct bid_flight *flight, size_t source)
{
	if (!bid_broker_is_offline(flight->broker))
		return false;
	flight->offline = true;
	bid_flight_verdict_unasked(flight, source, BID_OUTCOME_UNREACHABLE, "no server is asked at the moment (offline)");
	return true;
}

/* Is @source benched? Then that is its verdict. Under the lock. */
static bool is_benched(struct bid_flight *flight, size_t source)
{
	const struct bid_asked *asked = &flight->broker->asked[source];
	int64_t left = asked->benched_until_ms - bid_clock_ms();
	char text[BID_TEXT_MAX];

	if (!asked->probed && left <= 0)
		return false;
	if (asked->probed)
		snprintf(text, sizeof(text),
			 "%u wrong answers since it last delivered, and another request finds out about the next",
			 asked->stats.strikes);
	else
		snprintf(text, sizeof(text), "%u wrong answers since it last delivered, and is asked again in %lld s",
			 asked->stats.strikes, (long long)(left + 999) / 1000);
	bid_flight_verdict_unasked(flight, source, BID_OUTCOME_REJECTED, text);
	return true;
}

/* The next one that could be asked, or NULL. Under the lock. */
static struct bid_runner *next(struct bid_flight *flight)
{
	for (size_t i = 0; i < flight->n_runners; i++) {
		struct bid_runner *runner = &flight->runners[i];

		if (runner->state == BID_RUNNER_READY && !(runner->behind && flight->n_begun > 0))
			return runner;
	}
	return NULL;
}

/* The one to ask now, or NULL. Under the lock. */
static struct bid_runner *whose_turn(struct bid_flight *flight)
{
	struct bid_runner *runner;

	if ((flight->n_begun > 0 && !flight->slow) || flight->n_racing >= flight->width)
		return NULL;
	while ((runner = next(flight)) && (is_offline(flight, runner->source) || is_benched(flight, runner->source)))
		runner->state = BID_RUNNER_OUT;
	return runner;
}

static void stop_timer(struct bid_flight *flight)
{
	if (flight->timed)
		TAILQ_REMOVE(&flight->broker->races, flight, race);
	flight->timed = false;
}

/* Is there anything to look at after a while? Under the lock. */
static bool is_open(struct bid_flight *flight)
{
	if (flight->phase != BID_PHASE_FLYING || flight->cancelled)
		return false;
	if (flight->n_begun > 0)
		return flight->n_racing > 1 || next(flight);
	return flight->broker->config.loops || (flight->width < BID_RACE_MOST && next(flight));
}

/* Has @ask been sent, and nothing come for so long that it is not to keep others from being asked? Under the lock. */
static bool is_silent(const struct bid_ask *ask, int64_t now)
{
	int64_t limit = (int64_t)BID_RACE_SILENT * ask->flight->broker->config.race_ms;

	return ask->sent && !ask->lost && !ask->begun && ask->phase == BID_ASK_RUNNING && now - ask->started_ms >= limit;
}

/* May another one be asked beside those that are, if they are not fast enough? Under the lock. */
static bool has_place(const struct bid_flight *flight)
{
	unsigned places = BID_RACE_MAX;
	int64_t now = bid_clock_ms();
	const struct bid_ask *ask;

	for (ask = TAILQ_FIRST(&flight->asks); ask; ask = TAILQ_NEXT(ask, link))
		places += is_silent(ask, now);
	return flight->n_racing < (places < BID_RACE_MOST ? places : BID_RACE_MOST);
}

/* When is the next one to be asked beside those that are? Under the lock. */
static void start_timer(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;

	stop_timer(flight);
	if (broker->config.race_ms == BID_RACE_NEVER || !is_open(flight))
		return;
	flight->race_at_ms = bid_clock_ms() + broker->config.race_ms;
	flight->timed = true;
	TAILQ_INSERT_TAIL(&broker->races, flight, race);
	if (TAILQ_FIRST(&broker->races) == flight)
		pthread_cond_signal(&broker->has_time);
}

/* Under the lock. */
static struct bid_ask *ask_new(struct bid_flight *flight, struct bid_runner *runner)
{
	struct bid_asked *asked = &flight->broker->asked[runner->source];
	struct bid_ask *ask = calloc(1, sizeof(*ask));

	if (!ask)
		return NULL;
	ask->probe = asked->probed = asked->stats.strikes >= BID_STRIKES_MAX;
	ask->flight = flight;
	ask->source = runner->source;
	ask->started_ms = bid_clock_ms();
	ask->size = BID_SIZE_UNKNOWN;
	ask->head_checked = !bid_kind_is_elf(flight->request.kind);
	bid_flight_ref(flight);
	TAILQ_INSERT_TAIL(&flight->asks, ask, link);
	flight->broker->n_asks++;
	flight->n_racing++;
	runner->state = BID_RUNNER_ASKED;
	start_timer(flight);
	return ask;
}

/*
 * What is to be done? Under the lock. Returns the ask to start; or NULL, and then with @ret_over the error to end the flight
 * with, which nobody else does from then on.
 */
static struct bid_ask *choose(struct bid_flight *flight, struct bid_endings *endings, bool *ret_over, int *ret_error)
{
	struct bid_runner *runner;
	struct bid_ask *ask = NULL;
	int error = 0;

	if (flight->phase != BID_PHASE_FLYING)
		return NULL;
	runner = whose_turn(flight);
	if (!flight->cancelled && !runner && TAILQ_EMPTY(&flight->asks)) {
		error = bid_flight_conclusion(flight);
	} else if (flight->cancelled || flight->broker->ending || bid_flight_abandoned(flight)) {
		/* in the same breath, or somebody could still join and be told -EINTR without having given up */
		bid_flight_cancel(flight, endings);
		error = -EINTR;
	} else if (flight->given_up) {
		error = -ETIMEDOUT;
	} else if (runner) {
		ask = ask_new(flight, runner);
		error = -ENOMEM;
	}
	if (ask || error == 0 || !TAILQ_EMPTY(&flight->asks))
		return ask;
	flight->phase = BID_PHASE_ENDING;
	*ret_over = true;
	*ret_error = error;
	return NULL;
}

void bid_race_step(struct bid_flight *flight)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_broker *broker = flight->broker;
	struct bid_ask *ask;
	bool over = false;
	int error = 0;

	do {
		struct bid_endings endings = { 0 };
		int r;

		pthread_mutex_lock(&broker->lock);
		ask = choose(flight, &endings, &over, &error);
		pthread_mutex_unlock(&broker->lock);
		bid_endings_cancel(&endings);
		r = ask ? bid_ask_start(ask) : 0;
		if (r < 0) {
			bid_flight_verdict(flight, ask, BID_OUTCOME_UNREACHABLE, bid_strerror(r));
			bid_race_leave(ask, true);
		}
	} while (ask);
	if (!over)
		return;
	/* stripped debuginfo in the store is better than none */
	if (error == -ENOENT && flight->request.kind == BID_KIND_DEBUGINFO &&
	    bid_store_find(broker->store, &flight->request, &file) == 0)
		error = 0;
	bid_flight_end(flight, error, &file);
}

void bid_race_begun(struct bid_ask *ask)
{
	struct bid_broker *broker = ask->flight->broker;

	pthread_mutex_lock(&broker->lock);
	if (!ask->begun && !ask->lost) {
		ask->begun = true;
		if (ask->flight->n_begun++ == 0)
			ask->flight->slow = false;
		start_timer(ask->flight);
	}
	/* of another body, too */
	ask->begun_ms = bid_clock_ms();
	ask->begun_with = ask->received;
	pthread_mutex_unlock(&broker->lock);
}

static struct bid_runner *runner_of(const struct bid_ask *ask)
{
	struct bid_runner *runner = ask->flight->runners;

	while (runner->source != ask->source)
		runner++;
	return runner;
}

void bid_race_broke_off(struct bid_ask *ask)
{
	struct bid_flight *flight = ask->flight;
	struct bid_broker *broker = flight->broker;

	pthread_mutex_lock(&broker->lock);
	runner_of(ask)->broken++;
	if (ask->begun && !ask->lost) {
		ask->begun = false;
		flight->n_begun--;
		if (broker->config.race_ms != BID_RACE_NEVER && has_place(flight))
			flight->width = flight->n_racing + 1;
	}
	pthread_mutex_unlock(&broker->lock);
	bid_race_step(flight);
}

/* Take @ask out of the race. Under the lock. */
static void lose(struct bid_ask *ask)
{
	struct bid_runner *runner = runner_of(ask);

	if (ask->lost)
		return;
	runner->overtaken = true;
	runner->overtaken_ms = (unsigned)(bid_clock_ms() - ask->started_ms);
	ask->lost = true;
	ask->flight->n_racing--;
	ask->flight->n_begun -= ask->begun;
}

/* ... and end it. One that is decided on has come to its end. Under the lock. */
static void send_away(struct bid_ask *ask, struct bid_endings *endings)
{
	if (ask->phase == BID_ASK_DECIDING)
		return;
	lose(ask);
	if (!ask->cancelled && ask->phase == BID_ASK_RUNNING)
		bid_endings_add(endings, ask);
	ask->cancelled = true;
}

void bid_race_stop(struct bid_flight *flight, const struct bid_ask *but, struct bid_endings *endings)
{
	struct bid_ask *ask;

	stop_timer(flight);
	for (ask = TAILQ_FIRST(&flight->asks); ask; ask = TAILQ_NEXT(ask, link))
		if (ask != but)
			send_away(ask, endings);
}

void bid_race_stop_unsent(struct bid_flight *flight, struct bid_endings *endings)
{
	struct bid_ask *ask;

	for (ask = TAILQ_FIRST(&flight->asks); ask; ask = TAILQ_NEXT(ask, link))
		if (!ask->sent && ask->phase == BID_ASK_RUNNING)
			send_away(ask, endings);
}

/* How fast are those from which something comes? Under the lock. */
static void look(struct bid_flight *flight, struct bid_endings *endings)
{
	const struct bid_ask *first = bid_pace_first(flight);
	struct bid_ask *ask;
	bool slow = true;

	for (ask = TAILQ_FIRST(&flight->asks); ask; ask = TAILQ_NEXT(ask, link)) {
		if (!ask->begun || ask->lost)
			continue;
		if (ask != first && bid_pace_is_known(ask) && bid_pace_rate(ask) <= bid_pace_rate(first)) {
			runner_of(ask)->behind = true;
			send_away(ask, endings);
		} else if (!bid_pace_is_slow(ask)) {
			slow = false;
		}
	}
	flight->slow = slow;
	for (ask = TAILQ_FIRST(&flight->asks); ask; ask = TAILQ_NEXT(ask, link))
		ask->slow |= slow && ask->begun;
}

void bid_race_time_out(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;
	struct bid_endings endings = { 0 };
	size_t source = bid_loop_look(flight, &endings);

	stop_timer(flight);
	if (flight->n_begun > 0)
		look(flight, &endings);
	if (has_place(flight))
		flight->width = flight->n_racing + 1;
	start_timer(flight);
	bid_flight_ref(flight);
	pthread_mutex_unlock(&broker->lock);
	bid_endings_cancel(&endings);
	if (source != BID_LOOP_NONE)
		bid_loop_ask(broker, source);
	bid_race_step(flight);
	pthread_mutex_lock(&broker->lock);
	bid_flight_unref(flight);
}

/* @ask does not keep others from asking its source any more. Under the lock. */
static void end_probe(struct bid_ask *ask)
{
	if (ask->probe)
		ask->flight->broker->asked[ask->source].probed = false;
	ask->probe = false;
}

/* One more wrong answer benches the source of @ask again, but not all others wait for all of this one. Under the lock. */
static void pass_probe(struct bid_ask *ask)
{
	struct bid_source_stats *stats = &ask->flight->broker->asked[ask->source].stats;

	if (ask->probe && stats->strikes >= BID_STRIKES_MAX)
		stats->strikes = BID_STRIKES_MAX - 1;
	end_probe(ask);
}

/* Is there one that rests after its body broke off, with more of it than @ask has? Then that may be the first to be whole. */
static bool is_ahead(const struct bid_flight *flight, const struct bid_ask *ask)
{
	const struct bid_ask *other;

	for (other = TAILQ_FIRST(&flight->asks); other; other = TAILQ_NEXT(other, link))
		if (other != ask && !other->lost && !other->begun && other->received > ask->received)
			return true;
	return false;
}

bool bid_race_won(struct bid_ask *ask, bool whole)
{
	struct bid_flight *flight = ask->flight;
	struct bid_broker *broker = flight->broker;
	struct bid_endings endings = { 0 };
	bool won;

	pthread_mutex_lock(&broker->lock);
	pass_probe(ask);
	won = whole || ask->lost || (!ask->slow && bid_pace_first(flight) == ask && !is_ahead(flight, ask));
	if (won && !ask->lost) {
		/* or the one that is sent away would be asked again at once */
		flight->slow = false;
		bid_race_stop(flight, ask, &endings);
		start_timer(flight);
	}
	pthread_mutex_unlock(&broker->lock);
	bid_endings_cancel(&endings);
	return won;
}

void bid_race_leave(struct bid_ask *ask, bool said)
{
	struct bid_flight *flight = ask->flight;
	struct bid_runner *runner = runner_of(ask);
	struct bid_broker *broker = flight->broker;
	char text[BID_TEXT_MAX];

	pthread_mutex_lock(&broker->lock);
	lose(ask);
	end_probe(ask);
	TAILQ_REMOVE(&flight->asks, ask, link);
	runner->state = said ? BID_RUNNER_OUT : BID_RUNNER_READY;
	/* two that send each other away could do so for ever */
	if (!said && runner->broken >= BROKEN_MAX) {
		runner->state = BID_RUNNER_OUT;
		snprintf(text, sizeof(text), "what it sent broke off, %u times", runner->broken);
		bid_flight_verdict_unasked(flight, ask->source, BID_OUTCOME_UNREACHABLE, text);
	}
	pthread_mutex_unlock(&broker->lock);

	/* a file is closed, which may have to be freed on disk */
	bid_ask_free(ask);

	pthread_mutex_lock(&broker->lock);
	bid_flight_unref(flight);
	if (--broker->n_asks == 0)
		pthread_cond_broadcast(&broker->idle);
	pthread_mutex_unlock(&broker->lock);
}
