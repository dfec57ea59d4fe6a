// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/scheduler.h"

#include <stdio.h>
#include <stdlib.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/download.h"
#include "broker/loop.h"

/* A connection brings little in its first round trips: from the headers on it has this many times hedge_ms for the first 64 KiB. */
enum { HEAD_TURNS = 3 };

void bid_cancel_list_add(struct bid_cancel_list *cancels, const struct bid_attempt *attempt)
{
	cancels->of[cancels->n].source = attempt->download->broker->sources[attempt->source].source;
	cancels->of[cancels->n++].transfer = attempt->transfer;
}

void bid_cancel_list_run(const struct bid_cancel_list *cancels)
{
	for (unsigned i = 0; i < cancels->n; i++)
		cancels->of[i].source->ops->cancel(cancels->of[i].source, cancels->of[i].transfer);
}

/* The lower, the earlier it is asked. Under the lock. */
enum priority {
	PRIORITY_PREFERRED, /* delivered last */
	PRIORITY_PLAIN,
	PRIORITY_STRUCK, /* its last answer was a wrong one */
	PRIORITY_COUNT
};

static enum priority priority_of(const struct bid_broker *broker, size_t source)
{
	if (broker->sources[source].stats.strikes > 0)
		return PRIORITY_STRUCK;
	return source == broker->preferred ? PRIORITY_PREFERRED : PRIORITY_PLAIN;
}

/* Is @source not to be asked, by what it said before? Then that is its report. Without the lock. */
static bool is_negative(struct bid_download *download, size_t source)
{
	struct bid_broker *broker = download->broker;
	enum bid_outcome reason;
	char text[BID_TEXT_MAX];
	unsigned ttl;

	if (broker->config.no_negative) {
		bid_negative_forget(&broker->negative, &download->request, broker->sources[source].source->name);
		return false;
	}
	reason = bid_broker_negative(broker, &download->request, source, &ttl);
	if (reason == BID_OUTCOME_NONE)
		return false;
	snprintf(text, sizeof(text), "%s, and is asked again in %u s",
		 reason == BID_OUTCOME_REJECTED ? "what it sent was wrong" : "it said so before", ttl);
	pthread_mutex_lock(&broker->lock);
	bid_download_report_unasked(download, source, reason, text);
	pthread_mutex_unlock(&broker->lock);
	return true;
}

void bid_scheduler_line_up(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	struct bid_machine *machine = &download->machine;

	pthread_mutex_lock(&broker->lock);
	for (enum priority priority = PRIORITY_PREFERRED; priority < PRIORITY_COUNT; priority++)
		for (size_t source = 0; source < broker->n_sources; source++)
			if (priority_of(broker, source) == priority)
				machine->candidates[machine->n++].source = source;
	pthread_mutex_unlock(&broker->lock);

	for (size_t i = 0; i < machine->n; i++)
		if (is_negative(download, machine->candidates[i].source))
			machine->candidates[i].state = BID_ATTEMPT_OVER;
}

/* Is the source benched? Then @text says so. Under the lock. */
static bool is_benched(const struct bid_source_state *state, char text[static BID_TEXT_MAX])
{
	int64_t left = state->benched_until_ms - bid_clock_ms();

	if (!state->probed && left <= 0)
		return false;
	if (state->probed)
		snprintf(text, BID_TEXT_MAX,
			 "%u wrong answers since it last delivered, and another request finds out about the next",
			 state->stats.strikes);
	else
		snprintf(text, BID_TEXT_MAX, "%u wrong answers since it last delivered, and is asked again in %lld s",
			 state->stats.strikes, (long long)(left + 999) / 1000);
	return true;
}

/* Make the attempt of candidate @i. NULL if its source is not to be asked at all now, which is its report. Under the lock. */
static struct bid_attempt *attempt_new(struct bid_download *download, size_t i)
{
	struct bid_candidate *candidate = &download->machine.candidates[i];
	struct bid_source_state *state = &download->broker->sources[candidate->source];
	enum bid_outcome outcome = BID_OUTCOME_NONE;
	struct bid_attempt *attempt = NULL;
	char text[BID_TEXT_MAX];

	if (bid_broker_is_offline(download->broker)) {
		download->offline = true;
		outcome = BID_OUTCOME_UNREACHABLE;
		snprintf(text, sizeof(text), "no server is asked at the moment (offline)");
	} else if (is_benched(state, text)) {
		outcome = BID_OUTCOME_REJECTED;
	} else if (!(attempt = calloc(1, sizeof(*attempt)))) {
		outcome = BID_OUTCOME_FAILED;
		snprintf(text, sizeof(text), "out of memory");
	}
	if (outcome != BID_OUTCOME_NONE) {
		bid_download_report_unasked(download, candidate->source, outcome, text);
		return NULL;
	}
	attempt->probe = state->probed = state->stats.strikes >= BID_STRIKES_MAX;
	attempt->download = download;
	attempt->candidate = i;
	attempt->source = candidate->source;
	attempt->starting = true;
	attempt->started_ms = bid_clock_ms();
	attempt->size = BID_SIZE_UNKNOWN;
	attempt->head_checked = !bid_kind_is_elf(download->request.kind);
	bid_download_ref(download);
	candidate->attempt = attempt;
	download->broker->n_attempts++;
	return attempt;
}

/* Under the lock. */
static void set_timer(struct bid_download *download, bool wanted, enum bid_event event, bool started)
{
	unsigned turns = event == BID_EVENT_HEAD ? HEAD_TURNS : 1;
	bool anew = started || event == BID_EVENT_TIMER || event == BID_EVENT_HEAD;
	struct bid_broker *broker = download->broker;

	if (!wanted)
		bid_timer_disarm(&download->hedge);
	else if (anew || !download->hedge.timers)
		bid_broker_arm(broker, &download->hedge, bid_clock_ms() + (int64_t)turns * broker->config.hedge_ms);
}

struct bid_actions bid_scheduler_take(struct bid_download *download, enum bid_event event, size_t candidate,
				      struct bid_cancel_list *cancels)
{
	struct bid_broker *broker = download->broker;
	struct bid_machine *machine = &download->machine;
	struct bid_actions actions;

	machine->hedges = broker->config.hedge_ms != BID_HEDGE_NEVER;
	machine->unwanted = broker->ending || bid_download_abandoned(download);
	actions = bid_machine_take(machine, event, candidate);
	for (size_t i = 0; i < machine->n; i++) {
		const struct bid_attempt *attempt = machine->candidates[i].attempt;

		if (!(actions.cancel & UINT64_C(1) << i))
			continue;
		machine->candidates[i].overtaken_ms = (unsigned)(bid_clock_ms() - attempt->started_ms);
		/* else it is cancelled as soon as start() has told by which number */
		if (!attempt->starting)
			bid_cancel_list_add(cancels, attempt);
	}
	/* in the same breath, or somebody could still join and get -EINTR without having given up */
	if (machine->state == BID_DOWNLOAD_CANCELLED)
		bid_download_retire(download);
	set_timer(download, actions.timer, event, actions.start != BID_NO_CANDIDATE);
	return actions;
}

/* @attempt does not keep others from asking its source any more. Under the lock. */
static void end_probe(struct bid_attempt *attempt)
{
	if (attempt->probe)
		attempt->download->broker->sources[attempt->source].probed = false;
	attempt->probe = false;
}

/* Take @attempt from its candidate, and free it. Without the lock. */
static void drop_attempt(struct bid_attempt *attempt)
{
	struct bid_download *download = attempt->download;
	struct bid_broker *broker = download->broker;

	pthread_mutex_lock(&broker->lock);
	end_probe(attempt);
	download->machine.candidates[attempt->candidate].attempt = NULL;
	pthread_mutex_unlock(&broker->lock);

	/* a file is closed, which may have to be freed on disk */
	bid_attempt_free(attempt);

	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
	if (--broker->n_attempts == 0)
		pthread_cond_broadcast(&broker->idle);
	pthread_mutex_unlock(&broker->lock);
}

/* Ask. Returns the event that comes of it. Without the lock. */
static enum bid_event start(struct bid_download *download, struct bid_attempt *attempt)
{
	int r = attempt ? bid_attempt_start(attempt) : 0;

	if (!attempt)
		return BID_EVENT_SKIPPED;
	if (r == 0)
		return BID_EVENT_START;
	bid_download_report(download, attempt, BID_OUTCOME_UNREACHABLE, bid_strerror(r));
	drop_attempt(attempt);
	return BID_EVENT_REPORTED;
}

/* All is said: end @download with what it comes to. Without the lock. */
static void end(struct bid_download *download, int error)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	/* stripped debuginfo in the store is better than none */
	if (error == -ENOENT && download->request.kind == BID_KIND_DEBUGINFO &&
	    bid_store_find(download->broker->store, &download->request, &file) == 0)
		error = 0;
	bid_download_end(download, error, &file);
}

/* Two sources sent each other away, whose bodies break off: that is the report of one. Under the lock. */
static void report_broken(struct bid_download *download, const struct bid_candidate *candidate)
{
	char text[BID_TEXT_MAX];

	snprintf(text, sizeof(text), "what it sent broke off, %u times", candidate->broken);
	bid_download_report_unasked(download, candidate->source, BID_OUTCOME_UNREACHABLE, text);
}

/* Under the lock. */
static int error_of(const struct bid_download *download, enum bid_download_state ended_as)
{
	switch (ended_as) {
	case BID_DOWNLOAD_CANCELLED:
		return -EINTR;
	case BID_DOWNLOAD_GIVEN_UP:
		return -ETIMEDOUT;
	default:
		return bid_download_conclusion(download);
	}
}

void bid_scheduler_step(struct bid_download *download, enum bid_event event, size_t candidate)
{
	struct bid_broker *broker = download->broker;
	struct bid_actions actions;
	int error = 0;

	do {
		struct bid_cancel_list cancels = { 0 };
		struct bid_attempt *attempt = NULL;

		pthread_mutex_lock(&broker->lock);
		actions = bid_scheduler_take(download, event, candidate, &cancels);
		if (event == BID_EVENT_LEFT && download->machine.candidates[candidate].state == BID_ATTEMPT_OVER)
			report_broken(download, &download->machine.candidates[candidate]);
		if (actions.start != BID_NO_CANDIDATE)
			attempt = attempt_new(download, actions.start);
		if (actions.end)
			error = error_of(download, actions.ended_as);
		pthread_mutex_unlock(&broker->lock);

		bid_cancel_list_run(&cancels);
		if (actions.start == BID_NO_CANDIDATE)
			break;
		event = start(download, attempt);
		candidate = event == BID_EVENT_START ? BID_NO_CANDIDATE : actions.start;
	} while (true);
	if (actions.end)
		end(download, error);
}

/* Under the lock. */
static void refresh_received(struct bid_machine *machine)
{
	for (size_t i = 0; i < machine->n; i++)
		if (machine->candidates[i].attempt)
			machine->candidates[i].received = machine->candidates[i].attempt->received;
}

/* One more wrong answer benches the source of @attempt again, but not all others wait for all of this one. Under the lock. */
static void pass_probe(struct bid_attempt *attempt)
{
	struct bid_source_stats *stats = &attempt->download->broker->sources[attempt->source].stats;

	if (attempt->probe && stats->strikes >= BID_STRIKES_MAX)
		stats->strikes = BID_STRIKES_MAX - 1;
	end_probe(attempt);
}

enum bid_attempt_state bid_scheduler_note(struct bid_attempt *attempt, enum bid_event event)
{
	struct bid_download *download = attempt->download;
	struct bid_cancel_list cancels = { 0 };
	enum bid_attempt_state state;

	pthread_mutex_lock(&download->broker->lock);
	if (event == BID_EVENT_VERIFIED) {
		refresh_received(&download->machine);
		pass_probe(attempt);
	}
	bid_scheduler_take(download, event, attempt->candidate, &cancels);
	state = download->machine.candidates[attempt->candidate].state;
	pthread_mutex_unlock(&download->broker->lock);
	bid_cancel_list_run(&cancels);
	return state;
}

void bid_scheduler_leave(struct bid_attempt *attempt, enum bid_event event)
{
	struct bid_download *download = attempt->download;
	size_t candidate = attempt->candidate;

	drop_attempt(attempt);
	bid_scheduler_step(download, event, candidate);
}

void bid_scheduler_time_out(void *user)
{
	struct bid_download *download = user;
	struct bid_broker *broker = download->broker;
	struct bid_cancel_list cancels = { 0 };
	size_t source = bid_loop_look(download, &cancels);

	bid_download_ref(download);
	pthread_mutex_unlock(&broker->lock);
	bid_cancel_list_run(&cancels);
	if (source != BID_LOOP_NONE)
		bid_loop_ask(broker, source);
	bid_scheduler_step(download, BID_EVENT_TIMER, BID_NO_CANDIDATE);
	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
}
