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

	pthread_mutex_lock(&broker->lock);
	for (enum priority priority = PRIORITY_PREFERRED; priority < PRIORITY_COUNT; priority++)
		for (size_t source = 0; source < broker->n_sources; source++)
			if (priority_of(broker, source) == priority)
				download->candidates[download->n_candidates++] = (struct bid_candidate){ .source = source };
	pthread_mutex_unlock(&broker->lock);

	for (size_t i = 0; i < download->n_candidates; i++)
		if (is_negative(download, download->candidates[i].source))
			download->candidates[i].state = BID_CANDIDATE_DONE;
}

/* Was the broker told meanwhile to ask nobody? Then that is the verdict of @source. Under the lock. */
static bool is_offline(struct bid_download *download, size_t source)
{
	if (!bid_broker_is_offline(download->broker))
		return false;
	download->offline = true;
	bid_download_report_unasked(download, source, BID_OUTCOME_UNREACHABLE, "no server is asked at the moment (offline)");
	return true;
}

/* Is @source benched? Then that is its verdict. Under the lock. */
static bool is_benched(struct bid_download *download, size_t source)
{
	const struct bid_source_state *state = &download->broker->sources[source];
	int64_t left = state->benched_until_ms - bid_clock_ms();
	char text[BID_TEXT_MAX];

	if (!state->probed && left <= 0)
		return false;
	if (state->probed)
		snprintf(text, sizeof(text),
			 "%u wrong answers since it last delivered, and another request finds out about the next",
			 state->stats.strikes);
	else
		snprintf(text, sizeof(text), "%u wrong answers since it last delivered, and is asked again in %lld s",
			 state->stats.strikes, (long long)(left + 999) / 1000);
	bid_download_report_unasked(download, source, BID_OUTCOME_REJECTED, text);
	return true;
}

/* The next one that could be asked, or NULL. Under the lock. */
static struct bid_candidate *next(struct bid_download *download)
{
	for (size_t i = 0; i < download->n_candidates; i++) {
		struct bid_candidate *candidate = &download->candidates[i];

		if (candidate->state == BID_CANDIDATE_READY && !(candidate->behind && download->n_begun > 0))
			return candidate;
	}
	return NULL;
}

/* The one to ask now, or NULL. Under the lock. */
static struct bid_candidate *whose_turn(struct bid_download *download)
{
	struct bid_candidate *candidate;

	if ((download->n_begun > 0 && !download->slow) || download->n_running >= download->max_parallel)
		return NULL;
	while ((candidate = next(download)) && (is_offline(download, candidate->source) || is_benched(download, candidate->source)))
		candidate->state = BID_CANDIDATE_DONE;
	return candidate;
}

static void stop_timer(struct bid_download *download)
{
	if (download->timed)
		TAILQ_REMOVE(&download->broker->hedges, download, hedge);
	download->timed = false;
}

/* Is there anything to look at after a while? Under the lock. */
static bool is_open(struct bid_download *download)
{
	if (download->state != BID_DOWNLOAD_RUNNING || download->cancelled)
		return false;
	if (download->n_begun > 0)
		return download->n_running > 1 || next(download);
	return download->broker->config.loops || (download->max_parallel < BID_PARALLEL_MOST && next(download));
}

/* Has @attempt been sent, and nothing come for so long that it is not to keep others from being asked? Under the lock. */
static bool is_silent(const struct bid_attempt *attempt, int64_t now)
{
	int64_t limit = (int64_t)BID_PARALLEL_SILENT * attempt->download->broker->config.hedge_ms;

	return attempt->sent && !attempt->lost && !attempt->begun && attempt->state == BID_ATTEMPT_RUNNING &&
	       now - attempt->started_ms >= limit;
}

/* May another one be asked beside those that are, if they are not fast enough? Under the lock. */
static bool has_place(const struct bid_download *download)
{
	unsigned places = BID_PARALLEL_MAX;
	int64_t now = bid_clock_ms();
	const struct bid_attempt *attempt;

	for (attempt = TAILQ_FIRST(&download->attempts); attempt; attempt = TAILQ_NEXT(attempt, link))
		places += is_silent(attempt, now);
	return download->n_running < (places < BID_PARALLEL_MOST ? places : BID_PARALLEL_MOST);
}

/* When is the next one to be asked beside those that are? Under the lock. */
static void start_timer(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;

	stop_timer(download);
	if (broker->config.hedge_ms == BID_HEDGE_NEVER || !is_open(download))
		return;
	download->hedge_at_ms = bid_clock_ms() + broker->config.hedge_ms;
	download->timed = true;
	TAILQ_INSERT_TAIL(&broker->hedges, download, hedge);
	if (TAILQ_FIRST(&broker->hedges) == download)
		pthread_cond_signal(&broker->has_time);
}

/* Under the lock. */
static struct bid_attempt *attempt_new(struct bid_download *download, struct bid_candidate *candidate)
{
	struct bid_source_state *state = &download->broker->sources[candidate->source];
	struct bid_attempt *attempt = calloc(1, sizeof(*attempt));

	if (!attempt)
		return NULL;
	attempt->probe = state->probed = state->stats.strikes >= BID_STRIKES_MAX;
	attempt->download = download;
	attempt->source = candidate->source;
	attempt->started_ms = bid_clock_ms();
	attempt->size = BID_SIZE_UNKNOWN;
	attempt->head_checked = !bid_kind_is_elf(download->request.kind);
	bid_download_ref(download);
	TAILQ_INSERT_TAIL(&download->attempts, attempt, link);
	download->broker->n_attempts++;
	download->n_running++;
	candidate->state = BID_CANDIDATE_RUNNING;
	start_timer(download);
	return attempt;
}

/*
 * What is to be done? Under the lock. Returns the attempt to start; or NULL, and then with @ret_over the error to end the download
 * with, which nobody else does from then on.
 */
static struct bid_attempt *choose(struct bid_download *download, struct bid_cancel_list *cancels, bool *ret_over, int *ret_error)
{
	struct bid_candidate *candidate;
	struct bid_attempt *attempt = NULL;
	int error = 0;

	if (download->state != BID_DOWNLOAD_RUNNING)
		return NULL;
	candidate = whose_turn(download);
	if (!download->cancelled && !candidate && TAILQ_EMPTY(&download->attempts)) {
		error = bid_download_conclusion(download);
	} else if (download->cancelled || download->broker->ending || bid_download_abandoned(download)) {
		/* in the same breath, or somebody could still join and be told -EINTR without having given up */
		bid_download_cancel(download, cancels);
		error = -EINTR;
	} else if (download->given_up) {
		error = -ETIMEDOUT;
	} else if (candidate) {
		attempt = attempt_new(download, candidate);
		error = -ENOMEM;
	}
	if (attempt || error == 0 || !TAILQ_EMPTY(&download->attempts))
		return attempt;
	download->state = BID_DOWNLOAD_ENDING;
	*ret_over = true;
	*ret_error = error;
	return NULL;
}

void bid_scheduler_step(struct bid_download *download)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_broker *broker = download->broker;
	struct bid_attempt *attempt;
	bool over = false;
	int error = 0;

	do {
		struct bid_cancel_list cancels = { 0 };
		int r;

		pthread_mutex_lock(&broker->lock);
		attempt = choose(download, &cancels, &over, &error);
		pthread_mutex_unlock(&broker->lock);
		bid_cancel_list_run(&cancels);
		r = attempt ? bid_attempt_start(attempt) : 0;
		if (r < 0) {
			bid_download_report(download, attempt, BID_OUTCOME_UNREACHABLE, bid_strerror(r));
			bid_scheduler_leave(attempt, true);
		}
	} while (attempt);
	if (!over)
		return;
	/* stripped debuginfo in the store is better than none */
	if (error == -ENOENT && download->request.kind == BID_KIND_DEBUGINFO &&
	    bid_store_find(broker->store, &download->request, &file) == 0)
		error = 0;
	bid_download_end(download, error, &file);
}

void bid_scheduler_begun(struct bid_attempt *attempt)
{
	struct bid_broker *broker = attempt->download->broker;

	pthread_mutex_lock(&broker->lock);
	if (!attempt->begun && !attempt->lost) {
		attempt->begun = true;
		if (attempt->download->n_begun++ == 0)
			attempt->download->slow = false;
		start_timer(attempt->download);
	}
	/* of another body, too */
	attempt->begun_ms = bid_clock_ms();
	attempt->begun_with = attempt->received;
	pthread_mutex_unlock(&broker->lock);
}

static struct bid_candidate *candidate_of(const struct bid_attempt *attempt)
{
	struct bid_candidate *candidate = attempt->download->candidates;

	while (candidate->source != attempt->source)
		candidate++;
	return candidate;
}

void bid_scheduler_broke_off(struct bid_attempt *attempt)
{
	struct bid_download *download = attempt->download;
	struct bid_broker *broker = download->broker;

	pthread_mutex_lock(&broker->lock);
	candidate_of(attempt)->broken++;
	if (attempt->begun && !attempt->lost) {
		attempt->begun = false;
		download->n_begun--;
		if (broker->config.hedge_ms != BID_HEDGE_NEVER && has_place(download))
			download->max_parallel = download->n_running + 1;
	}
	pthread_mutex_unlock(&broker->lock);
	bid_scheduler_step(download);
}

/* Take @attempt out of the race. Under the lock. */
static void lose(struct bid_attempt *attempt)
{
	struct bid_candidate *candidate = candidate_of(attempt);

	if (attempt->lost)
		return;
	candidate->overtaken = true;
	candidate->overtaken_ms = (unsigned)(bid_clock_ms() - attempt->started_ms);
	attempt->lost = true;
	attempt->download->n_running--;
	attempt->download->n_begun -= attempt->begun;
}

/* ... and end it. One that is decided on has come to its end. Under the lock. */
static void send_away(struct bid_attempt *attempt, struct bid_cancel_list *cancels)
{
	if (attempt->state == BID_ATTEMPT_DECIDING)
		return;
	lose(attempt);
	if (!attempt->cancelled && attempt->state == BID_ATTEMPT_RUNNING)
		bid_cancel_list_add(cancels, attempt);
	attempt->cancelled = true;
}

void bid_scheduler_stop(struct bid_download *download, const struct bid_attempt *but, struct bid_cancel_list *cancels)
{
	struct bid_attempt *attempt;

	stop_timer(download);
	for (attempt = TAILQ_FIRST(&download->attempts); attempt; attempt = TAILQ_NEXT(attempt, link))
		if (attempt != but)
			send_away(attempt, cancels);
}

void bid_scheduler_stop_unsent(struct bid_download *download, struct bid_cancel_list *cancels)
{
	struct bid_attempt *attempt;

	for (attempt = TAILQ_FIRST(&download->attempts); attempt; attempt = TAILQ_NEXT(attempt, link))
		if (!attempt->sent && attempt->state == BID_ATTEMPT_RUNNING)
			send_away(attempt, cancels);
}

/* How fast are those from which something comes? Under the lock. */
static void look(struct bid_download *download, struct bid_cancel_list *cancels)
{
	const struct bid_attempt *first = bid_pace_first(download);
	struct bid_attempt *attempt;
	bool slow = true;

	for (attempt = TAILQ_FIRST(&download->attempts); attempt; attempt = TAILQ_NEXT(attempt, link)) {
		if (!attempt->begun || attempt->lost)
			continue;
		if (attempt != first && bid_pace_is_known(attempt) && bid_pace_rate(attempt) <= bid_pace_rate(first)) {
			candidate_of(attempt)->behind = true;
			send_away(attempt, cancels);
		} else if (!bid_pace_is_slow(attempt)) {
			slow = false;
		}
	}
	download->slow = slow;
	for (attempt = TAILQ_FIRST(&download->attempts); attempt; attempt = TAILQ_NEXT(attempt, link))
		attempt->slow |= slow && attempt->begun;
}

void bid_scheduler_time_out(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	struct bid_cancel_list cancels = { 0 };
	size_t source = bid_loop_look(download, &cancels);

	stop_timer(download);
	if (download->n_begun > 0)
		look(download, &cancels);
	if (has_place(download))
		download->max_parallel = download->n_running + 1;
	start_timer(download);
	bid_download_ref(download);
	pthread_mutex_unlock(&broker->lock);
	bid_cancel_list_run(&cancels);
	if (source != BID_LOOP_NONE)
		bid_loop_ask(broker, source);
	bid_scheduler_step(download);
	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
}

/* @attempt does not keep others from asking its source any more. Under the lock. */
static void end_probe(struct bid_attempt *attempt)
{
	if (attempt->probe)
		attempt->download->broker->sources[attempt->source].probed = false;
	attempt->probe = false;
}

/* One more wrong answer benches the source of @attempt again, but not all others wait for all of this one. Under the lock. */
static void pass_probe(struct bid_attempt *attempt)
{
	struct bid_source_stats *stats = &attempt->download->broker->sources[attempt->source].stats;

	if (attempt->probe && stats->strikes >= BID_STRIKES_MAX)
		stats->strikes = BID_STRIKES_MAX - 1;
	end_probe(attempt);
}

/* Is there one that rests after its body broke off, with more of it than @attempt has? Then that may be the first to be whole. */
static bool is_ahead(const struct bid_download *download, const struct bid_attempt *attempt)
{
	const struct bid_attempt *other;

	for (other = TAILQ_FIRST(&download->attempts); other; other = TAILQ_NEXT(other, link))
		if (other != attempt && !other->lost && !other->begun && other->received > attempt->received)
			return true;
	return false;
}

bool bid_scheduler_won(struct bid_attempt *attempt, bool whole)
{
	struct bid_download *download = attempt->download;
	struct bid_broker *broker = download->broker;
	struct bid_cancel_list cancels = { 0 };
	bool won;

	pthread_mutex_lock(&broker->lock);
	pass_probe(attempt);
	won = whole || attempt->lost || (!attempt->slow && bid_pace_first(download) == attempt && !is_ahead(download, attempt));
	if (won && !attempt->lost) {
		/* or the one that is sent away would be asked again at once */
		download->slow = false;
		bid_scheduler_stop(download, attempt, &cancels);
		start_timer(download);
	}
	pthread_mutex_unlock(&broker->lock);
	bid_cancel_list_run(&cancels);
	return won;
}

void bid_scheduler_leave(struct bid_attempt *attempt, bool said)
{
	struct bid_download *download = attempt->download;
	struct bid_candidate *candidate = candidate_of(attempt);
	struct bid_broker *broker = download->broker;
	char text[BID_TEXT_MAX];

	pthread_mutex_lock(&broker->lock);
	lose(attempt);
	end_probe(attempt);
	TAILQ_REMOVE(&download->attempts, attempt, link);
	candidate->state = said ? BID_CANDIDATE_DONE : BID_CANDIDATE_READY;
	/* two that send each other away could do so for ever */
	if (!said && candidate->broken >= BROKEN_MAX) {
		candidate->state = BID_CANDIDATE_DONE;
		snprintf(text, sizeof(text), "what it sent broke off, %u times", candidate->broken);
		bid_download_report_unasked(download, attempt->source, BID_OUTCOME_UNREACHABLE, text);
	}
	pthread_mutex_unlock(&broker->lock);

	/* a file is closed, which may have to be freed on disk */
	bid_attempt_free(attempt);

	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
	if (--broker->n_attempts == 0)
		pthread_cond_broadcast(&broker->idle);
	pthread_mutex_unlock(&broker->lock);
}
