// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/download.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define TROUBLE_QUIET_MS 10000

/* Is @text of @asked not worth a line, because one was logged a short while ago? Notes it if it is. Under the lock. */
static bool said_lately(struct bid_asked *asked, const char *text)
{
	struct bid_trouble *oldest = &asked->troubles[0];
	int64_t now = bid_clock_ms();
	struct bid_trouble trouble = { .logged_ms = now };

	snprintf(trouble.text, sizeof(trouble.text), "%s", text);
	for (size_t i = 0; i < sizeof(asked->troubles) / sizeof(*asked->troubles); i++) {
		struct bid_trouble *other = &asked->troubles[i];

		if (other->logged_ms > 0 && strcmp(other->text, trouble.text) == 0) {
			if (now - other->logged_ms < TROUBLE_QUIET_MS)
				return true;
			oldest = other;
			break;
		}
		if (other->logged_ms < oldest->logged_ms)
			oldest = other;
	}
	*oldest = trouble;
	return false;
}

static bool is_trouble(enum bid_outcome outcome)
{
	return outcome != BID_OUTCOME_FOUND && outcome != BID_OUTCOME_ABSENT && outcome != BID_OUTCOME_CANCELLED;
}

/* Under the lock. */
static void count(const struct bid_ask *ask, enum bid_outcome outcome)
{
	struct bid_source_stats *stats = &ask->flight->broker->asked[ask->source].stats;

	if (ask->said.unasked)
		return;
	stats->asked++;
	stats->outcomes[(unsigned)outcome < BID_OUTCOME_COUNT ? outcome : BID_OUTCOME_NONE]++;
	stats->bytes += ask->delivered;
}

void bid_ask_count(const struct bid_ask *ask, enum bid_outcome outcome)
{
	struct bid_broker *broker = ask->flight->broker;

	pthread_mutex_lock(&broker->lock);
	count(ask, outcome);
	pthread_mutex_unlock(&broker->lock);
}

/* Returns whether a message is due. Under the lock. */
static bool note_trouble(const struct bid_ask *ask, enum bid_outcome outcome, const char *text)
{
	struct bid_broker *broker = ask->flight->broker;
	struct bid_asked *asked = &broker->asked[ask->source];
	struct bid_source_stats *stats = &asked->stats;

	if (!is_trouble(outcome))
		return false;
	snprintf(stats->last_trouble, sizeof(stats->last_trouble), "%s", text);
	stats->last_trouble_time = time(NULL);
	bid_failures_add(&broker->failures, stats->name, &ask->flight->request, outcome, text, stats->last_trouble_time);
	/* a wrong body is told of each time: each is another artifact that somebody must look after */
	return outcome == BID_OUTCOME_REJECTED || !said_lately(asked, text);
}

const char *bid_request_name(const struct bid_request *request, char buf[static BID_NAME_MAX])
{
	char hex[BID_ID_HEX_MAX];

	snprintf(buf, BID_NAME_MAX, "%s/%s%s%s", bid_id_format(&request->id, hex), bid_kind_name(request->kind),
		 request->kind == BID_KIND_SECTION ? "/" : "", bid_detail_text(request->detail));
	return buf;
}

static void report(const struct bid_flight *flight, const char *name, enum bid_outcome outcome, const char *text)
{
	char buf[BID_NAME_MAX];

	switch (outcome) {
	case BID_OUTCOME_REJECTED:
		bid_warning("%s, refused what %s delivered: '%s'", text, name, bid_request_name(&flight->request, buf));
		break;
	case BID_OUTCOME_FAILED:
		bid_warning("%s, cannot keep what %s delivered: '%s'", text, name, bid_request_name(&flight->request, buf));
		break;
	case BID_OUTCOME_TOO_LARGE:
	case BID_OUTCOME_UNSUPPORTED:
		bid_info("%s, %s: '%s'", text, bid_outcome_name(outcome), name);
		break;
	default:
		bid_warning("%s, %s: '%s'", text, bid_outcome_name(outcome), name);
		break;
	}
}

/* Under the lock. */
static void bench(struct bid_asked *asked)
{
	int64_t ms = BID_BENCH_MIN_MS;

	for (unsigned strike = BID_STRIKES_MAX; strike < asked->stats.strikes && ms < BID_BENCH_MAX_MS; strike++)
		ms *= 2;
	asked->benched_until_ms = bid_clock_ms() + (ms < BID_BENCH_MAX_MS ? ms : BID_BENCH_MAX_MS);
}

/*
 * What the outcome says of the source. Other bytes than the first ones may be right as well: no strike. And what does not carry its
 * id, as a page for everybody does not, clears nobody. Under the lock.
 */
static void judge(const struct bid_ask *ask, enum bid_outcome outcome)
{
	struct bid_broker *broker = ask->flight->broker;
	struct bid_asked *asked = &broker->asked[ask->source];
	unsigned strikes = asked->stats.strikes;

	if (outcome == BID_OUTCOME_FOUND && (strikes == 0 || bid_kind_is_elf(ask->flight->request.kind))) {
		if (!ask->slow)
			broker->favourite = ask->source;
		asked->stats.strikes = 0;
		asked->benched_until_ms = 0;
	} else if ((outcome == BID_OUTCOME_ABSENT || outcome == BID_OUTCOME_FOUND) && ask->probe) {
		/* who sends the same to everybody does not say "no"; and one more wrong answer will do */
		asked->stats.strikes = BID_STRIKES_MAX - 1;
	} else if (outcome == BID_OUTCOME_REJECTED && !ask->changed && (strikes < BID_STRIKES_MAX || ask->probe)) {
		asked->stats.strikes++;
		/* those that were on their way already tell nothing new */
		if (asked->stats.strikes >= BID_STRIKES_MAX)
			bench(asked);
	}
}

/* Under the lock. Each source has one verdict at most, so there is room. Returns whether the strings of @verdict were taken. */
static bool add_verdict(struct bid_flight *flight, const struct bid_verdict *verdict)
{
	size_t n = flight->n_verdicts;

	/* but for one that was overtaken while it was started, and then could not be */
	if (n == flight->n_runners)
		return false;
	snprintf(flight->texts[n], sizeof(flight->texts[n]), "%s", verdict->text);
	flight->verdicts[n] = *verdict;
	flight->verdicts[n].text = flight->texts[n];
	flight->n_verdicts = n + 1;
	return true;
}

void bid_flight_verdict_unasked(struct bid_flight *flight, size_t source, enum bid_outcome outcome, const char *text)
{
	const char *name = flight->broker->asked[source].source->name;

	add_verdict(flight, &(struct bid_verdict){ .source = name, .outcome = outcome, .text = text });
}

void bid_flight_verdict_overtaken(struct bid_flight *flight, size_t winner)
{
	struct bid_broker *broker = flight->broker;
	char text[BID_TEXT_MAX];

	snprintf(text, sizeof(text), "%s was faster", broker->asked[winner].source->name);
	pthread_mutex_lock(&broker->lock);
	for (size_t i = 0; i < flight->n_runners; i++) {
		const struct bid_runner *runner = &flight->runners[i];

		/* one that has said something has its verdict, but for the winner, who is told of already */
		if (!runner->overtaken || runner->state == BID_RUNNER_OUT || runner->source == winner)
			continue;
		add_verdict(flight, &(struct bid_verdict){
					    .source = broker->asked[runner->source].source->name,
					    .outcome = BID_OUTCOME_CANCELLED,
					    .text = text,
					    .elapsed_ms = runner->overtaken_ms,
				    });
	}
	pthread_mutex_unlock(&broker->lock);
}

void bid_flight_verdict(struct bid_flight *flight, struct bid_ask *ask, enum bid_outcome outcome, const char *text)
{
	struct bid_broker *broker = flight->broker;
	struct bid_asked *asked = &broker->asked[ask->source];
	struct bid_verdict verdict = {
		.source = asked->source->name,
		.outcome = outcome,
		.changed = ask->changed,
		.text = text,
		.url = ask->said.url,
		.led_to = ask->said.led_to,
		.tries = ask->said.tries,
		.before = ask->said.before,
		.bytes = ask->delivered,
		.received = ask->received,
		.elapsed_ms = (unsigned)(bid_clock_ms() - ask->started_ms),
	};
	struct bid_heard *heard = outcome == BID_OUTCOME_CANCELLED ? NULL : bid_heard_new(&flight->request, &verdict, time(NULL));
	bool due;

	if (outcome == BID_OUTCOME_REJECTED)
		atomic_fetch_add(&broker->counts.rejected, 1);
	pthread_mutex_lock(&broker->lock);
	bid_heard_add(&broker->heard, heard);
	if (add_verdict(flight, &verdict)) {
		bid_steal(ask->said.url);
		bid_steal(ask->said.led_to);
		bid_steal(ask->said.before);
	}
	count(ask, outcome);
	flight->no_room |= bid_ask_has_no_room(ask);
	due = note_trouble(ask, outcome, text);
	judge(ask, outcome);
	pthread_mutex_unlock(&broker->lock);
	if (due)
		report(flight, asked->source->name, outcome, text);
}

int bid_flight_conclusion(const struct bid_flight *flight)
{
	bool all_no = true;
	bool only_rejected = true;

	for (size_t i = 0; i < flight->n_verdicts; i++) {
		enum bid_outcome outcome = flight->verdicts[i].outcome;

		if (outcome == BID_OUTCOME_TOO_LARGE)
			return -EFBIG;
		if (bid_outcome_is_no(outcome))
			continue;
		all_no = false;
		if (outcome != BID_OUTCOME_REJECTED)
			only_rejected = false;
	}
	if (all_no)
		return -ENOENT;
	if (flight->no_room)
		return -ENOSPC;
	return only_rejected ? -EBADMSG : -EHOSTUNREACH;
}

bool bid_flight_is_too_large(const struct bid_flight *flight)
{
	for (size_t i = 0; i < flight->n_verdicts; i++) {
		enum bid_outcome outcome = flight->verdicts[i].outcome;

		if (outcome != BID_OUTCOME_TOO_LARGE && !bid_outcome_is_no(outcome))
			return false;
	}
	return true;
}

void bid_broker_stats(struct bid_broker *broker, struct bid_broker_stats *ret_stats)
{
	struct bid_broker_stats stats = {
		.hits = broker->counts.hits,
		.fetched = broker->counts.fetched,
		.absent = broker->counts.absent,
		.unknown = broker->counts.unknown,
		.rejected = broker->counts.rejected,
		.interrupted = broker->counts.interrupted,
		.negative_entries = bid_absences_count(broker->absences) + bid_absences_count(broker->too_large),
	};

	pthread_mutex_lock(&broker->lock);
	stats.flights = broker->n_flights;
	stats.waiters = broker->n_waiting;
	pthread_mutex_unlock(&broker->lock);
	*ret_stats = stats;
}

int bid_broker_source_stats(struct bid_broker *broker, size_t index, struct bid_source_stats *ret_stats)
{
	struct bid_source *source;
	int64_t left;

	if (index >= broker->n_sources)
		return -ENOENT;
	pthread_mutex_lock(&broker->lock);
	*ret_stats = broker->asked[index].stats;
	ret_stats->preferred = index == broker->favourite;
	left = broker->asked[index].benched_until_ms - bid_clock_ms();
	ret_stats->benched_s = left > 0 ? (unsigned)((left + 999) / 1000) : 0;
	pthread_mutex_unlock(&broker->lock);
	source = broker->asked[index].source;
	if (source->ops->health)
		source->ops->health(source, &ret_stats->health);
	return 0;
}
