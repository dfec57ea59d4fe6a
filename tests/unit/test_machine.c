// SPDX-License-Identifier: LGPL-2.1-or-later
/* The states of a download: every event in every state, by tables, and the invariants after any series of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/machine.h"

#define N	     3
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct rig {
	struct bid_machine machine;
	struct bid_candidate candidates[N];
};

static void set(struct rig *rig, enum bid_download_state state, enum bid_candidate_state first)
{
	*rig = (struct rig){ .machine = { .state = state, .n = N } };
	rig->machine.candidates = rig->candidates;
	rig->candidates[0].state = first;
}

/*
 * State of the only attempt after an event, in a download that is RUNNING: a letter for each state before, IDLE to DONE. '.' is no
 * change. An attempt that may start becomes QUEUED at once.
 */
static const char *const attempts[BID_EVENTS] = {
	/* NVQSBCDTLO: IDLE, IDLE_AGAIN, QUEUED, SENT, BODY, CHOSEN, DECIDING, STOPPED, DROPPING, DONE */
	[BID_EVENT_SENT] = "..S.......",	   [BID_EVENT_HEADER] = "..BBBB....",	[BID_EVENT_CHECKED] = "..CCCC....",
	[BID_EVENT_BROKE_OFF] = "..BBBB....",	   [BID_EVENT_LOOP] = "..TTTT....",	[BID_EVENT_DONE] = "..DDDD.D..",
	[BID_EVENT_DONE_CANCELLED] = "..DDDD.L..", [BID_EVENT_REPORTED] = "OOOOOOOOOO", [BID_EVENT_DROPPED] = "QQQQQQQQQQ",
};

static const char letters[] = "NVQSBCDTLO";

static void test_every_event_in_every_state_of_an_attempt(void **state)
{
	for (int event = BID_EVENT_SENT; event < BID_EVENTS; event++)
		for (size_t before = 0; before < BID_CANDIDATE_STATES; before++) {
			char after = attempts[event][before];
			struct rig rig;

			set(&rig, BID_DOWNLOAD_RUNNING, (enum bid_candidate_state)before);
			bid_machine_step(&rig.machine, (enum bid_machine_event)event, 0);
			if (after == '.')
				after = letters[before];
			if (letters[rig.candidates[0].state] != after)
				fail_msg("event %d in state %c: %c", event, letters[before], letters[rig.candidates[0].state]);
		}
}

/* State of a download with one attempt after an event: a letter, or 'e' if the event ends the download. */
static const struct {
	enum bid_machine_event event;
	enum bid_candidate_state attempt;
	bool unwanted;
	const char *after; /* for each state before: NEW, RUNNING, CANCELLED, TIMED_OUT, ENDED */
} downloads[] = {
	{ BID_EVENT_START, BID_CANDIDATE_SENT, false, "RRCTE" },
	{ BID_EVENT_START, BID_CANDIDATE_SENT, true, "CCCTE" },
	{ BID_EVENT_START, BID_CANDIDATE_DECIDING, true, "RRCTE" },
	{ BID_EVENT_START, BID_CANDIDATE_DONE, false, "RReeE" },
	{ BID_EVENT_TIMER, BID_CANDIDATE_SENT, false, "NRCTE" },
	{ BID_EVENT_TIMER, BID_CANDIDATE_BODY, false, "NRCTE" },
	{ BID_EVENT_TIMER, BID_CANDIDATE_SENT, true, "NCCTE" },
	{ BID_EVENT_CANCEL, BID_CANDIDATE_SENT, false, "CCCTE" },
	{ BID_EVENT_CANCEL, BID_CANDIDATE_CHOSEN, false, "CCCTE" },
	{ BID_EVENT_CANCEL, BID_CANDIDATE_DECIDING, false, "NRCTE" },
	{ BID_EVENT_TIMEOUT, BID_CANDIDATE_QUEUED, false, "TTCTE" },
	{ BID_EVENT_TIMEOUT, BID_CANDIDATE_IDLE, false, "TTCTE" },
	{ BID_EVENT_TIMEOUT, BID_CANDIDATE_SENT, false, "NRCTE" },
	{ BID_EVENT_TIMEOUT, BID_CANDIDATE_BODY, false, "NRCTE" },
	{ BID_EVENT_OFFLINE, BID_CANDIDATE_QUEUED, false, "NRCTE" },
	{ BID_EVENT_RESULT, BID_CANDIDATE_IDLE, false, "EEEEE" },
	{ BID_EVENT_RESULT, BID_CANDIDATE_DECIDING, false, "EEEEE" },
	{ BID_EVENT_WHOLE_FILE_FAILED, BID_CANDIDATE_DONE, false, "NReeE" },
	{ BID_EVENT_SENT, BID_CANDIDATE_QUEUED, false, "NRCTE" },
	{ BID_EVENT_HEADER, BID_CANDIDATE_SENT, false, "NRCTE" },
	{ BID_EVENT_CHECKED, BID_CANDIDATE_BODY, true, "NRCTE" },
	{ BID_EVENT_BROKE_OFF, BID_CANDIDATE_CHOSEN, false, "NRCTE" },
	{ BID_EVENT_BROKE_OFF, BID_CANDIDATE_CHOSEN, true, "NCCTE" },
	{ BID_EVENT_LOOP, BID_CANDIDATE_SENT, false, "NRCTE" },
	{ BID_EVENT_DONE, BID_CANDIDATE_CHOSEN, true, "NRCTE" },
	{ BID_EVENT_DONE_CANCELLED, BID_CANDIDATE_STOPPED, false, "NRCTE" },
	{ BID_EVENT_DROPPED, BID_CANDIDATE_DROPPING, false, "NReeE" },
	{ BID_EVENT_REPORTED, BID_CANDIDATE_QUEUED, false, "NReeE" },
	{ BID_EVENT_REPORTED, BID_CANDIDATE_DECIDING, true, "NeeeE" },
};

static void test_every_event_in_every_state_of_a_download(void **state)
{
	static const char names[] = "NRCTE";
	bool seen[BID_EVENTS] = { false };

	for (size_t i = 0; i < COUNT(downloads); i++)
		for (size_t before = 0; before < BID_DOWNLOAD_STATES; before++) {
			bool of_attempt = downloads[i].event >= BID_EVENT_SENT;
			struct bid_actions actions;
			struct rig rig;
			char after;

			seen[downloads[i].event] = true;
			set(&rig, (enum bid_download_state)before, downloads[i].attempt);
			rig.machine.unwanted = downloads[i].unwanted;
			actions = bid_machine_step(&rig.machine, downloads[i].event, of_attempt ? 0 : BID_NO_CANDIDATE);
			after = actions.end ? 'e' : names[rig.machine.state];
			if (after != downloads[i].after[before])
				fail_msg("row %zu in state %c: %c", i, names[before], after);
			if (actions.end) {
				assert_int_equal(rig.machine.state, BID_DOWNLOAD_ENDED);
				assert_int_equal(actions.ended_as, downloads[i].unwanted && before == BID_DOWNLOAD_RUNNING
									   ? BID_DOWNLOAD_CANCELLED
									   : before);
			}
		}
	for (size_t event = 0; event < BID_EVENTS; event++)
		assert_true(seen[event]);
}

static void test_response_counts_while_the_download_runs(void **state)
{
	for (size_t download = 0; download < BID_DOWNLOAD_STATES; download++)
		for (size_t attempt = 0; attempt < BID_CANDIDATE_STATES; attempt++) {
			bool counts = attempt == BID_CANDIDATE_DECIDING &&
				      (download == BID_DOWNLOAD_RUNNING || download == BID_DOWNLOAD_TIMED_OUT);
			struct rig rig;

			set(&rig, (enum bid_download_state)download, (enum bid_candidate_state)attempt);
			assert_int_equal(bid_machine_wants_report(&rig.machine, 0), counts);
		}
}

static struct bid_actions take(struct rig *rig, enum bid_machine_event event, size_t candidate)
{
	return bid_machine_step(&rig->machine, event, candidate);
}

static void test_silent_servers_are_hedged_one_by_one(void **state)
{
	struct bid_actions actions;
	struct rig rig;

	set(&rig, BID_DOWNLOAD_NEW, BID_CANDIDATE_IDLE);
	assert_int_equal(take(&rig, BID_EVENT_START, BID_NO_CANDIDATE).start, 0);
	assert_int_equal(take(&rig, BID_EVENT_START, BID_NO_CANDIDATE).start, BID_NO_CANDIDATE);
	assert_int_equal(take(&rig, BID_EVENT_SENT, 0).hedge, BID_HEDGE_KEEP);
	actions = take(&rig, BID_EVENT_TIMER, BID_NO_CANDIDATE);
	assert_int_equal(actions.start, 1);
	assert_int_equal(actions.hedge, BID_HEDGE_AFTER_START);
	/* a "no" lets the next one in at once */
	take(&rig, BID_EVENT_DONE, 1);
	assert_int_equal(take(&rig, BID_EVENT_REPORTED, 1).start, 2);
	/* a chosen one keeps the other candidates from starting; its headers alone do not */
	assert_int_equal(take(&rig, BID_EVENT_HEADER, 2).hedge, BID_HEDGE_AFTER_HEADER);
	assert_int_equal(take(&rig, BID_EVENT_CHECKED, 2).hedge, BID_HEDGE_STOP);
	assert_int_equal(take(&rig, BID_EVENT_TIMER, BID_NO_CANDIDATE).start, BID_NO_CANDIDATE);
}

static void test_chosen_one_stops_others_until_it_fails(void **state)
{
	struct rig rig;

	set(&rig, BID_DOWNLOAD_NEW, BID_CANDIDATE_IDLE);
	take(&rig, BID_EVENT_START, BID_NO_CANDIDATE);
	take(&rig, BID_EVENT_TIMER, BID_NO_CANDIDATE);
	take(&rig, BID_EVENT_HEADER, 1);
	assert_int_equal(take(&rig, BID_EVENT_CHECKED, 1).cancel, 1 << 0);
	assert_int_equal(rig.candidates[0].state, BID_CANDIDATE_STOPPED);
	take(&rig, BID_EVENT_DONE_CANCELLED, 0);
	assert_int_equal(take(&rig, BID_EVENT_DROPPED, 0).start, BID_NO_CANDIDATE);
	assert_int_equal(rig.candidates[0].state, BID_CANDIDATE_IDLE_AGAIN);
	take(&rig, BID_EVENT_DONE, 1);
	assert_int_equal(take(&rig, BID_EVENT_REPORTED, 1).start, 0);
}

static void test_broken_body_starts_the_next_candidate(void **state)
{
	struct rig rig;

	set(&rig, BID_DOWNLOAD_NEW, BID_CANDIDATE_IDLE);
	take(&rig, BID_EVENT_START, BID_NO_CANDIDATE);
	take(&rig, BID_EVENT_CHECKED, 0);
	assert_int_equal(take(&rig, BID_EVENT_BROKE_OFF, 0).start, 1);
	assert_int_equal(take(&rig, BID_EVENT_CHECKED, 1).cancel, 1 << 0);
	/* a cancelled server of a broken body starts no more, others do */
	assert_int_equal(take(&rig, BID_EVENT_BROKE_OFF, 1).start, 2);
	assert_int_equal(take(&rig, BID_EVENT_DROPPED, 0).start, BID_NO_CANDIDATE);
	assert_int_equal(rig.candidates[0].state, BID_CANDIDATE_IDLE_AGAIN);
	assert_true(rig.candidates[0].broken);
	/* the server may resume first */
	assert_int_equal(take(&rig, BID_EVENT_CHECKED, 1).cancel, 1 << 2);
	take(&rig, BID_EVENT_DROPPED, 2);
	assert_int_equal(rig.candidates[2].state, BID_CANDIDATE_IDLE_AGAIN);
}

static void test_offline_cancels_only_queued_attempts(void **state)
{
	for (size_t attempt = 0; attempt < BID_CANDIDATE_STATES; attempt++) {
		bool queued = attempt == BID_CANDIDATE_QUEUED;
		struct bid_actions actions;
		struct rig rig;

		set(&rig, BID_DOWNLOAD_RUNNING, (enum bid_candidate_state)attempt);
		actions = take(&rig, BID_EVENT_OFFLINE, BID_NO_CANDIDATE);
		assert_int_equal(actions.cancel & 1, queued);
		assert_int_equal(rig.machine.candidates[0].state, queued ? BID_CANDIDATE_STOPPED : attempt);
	}
}

static void test_absent_everywhere_ends_by_the_reports(void **state)
{
	struct bid_actions actions;
	struct rig rig;

	set(&rig, BID_DOWNLOAD_NEW, BID_CANDIDATE_DONE);
	actions = take(&rig, BID_EVENT_START, BID_NO_CANDIDATE);
	assert_int_equal(actions.start, 1);
	assert_int_equal(take(&rig, BID_EVENT_REPORTED, 1).start, 2);
	take(&rig, BID_EVENT_DONE, 2);
	actions = take(&rig, BID_EVENT_REPORTED, 2);
	assert_true(actions.end);
	assert_int_equal(actions.ended_as, BID_DOWNLOAD_RUNNING);
}

/* The only server has answered, and two whole files are left. */
static void set_before_whole_files(struct rig *rig)
{
	set(rig, BID_DOWNLOAD_RUNNING, BID_CANDIDATE_DECIDING);
	rig->machine.n = 1;
	rig->machine.whole_files = 2;
}

static void test_whole_files_follow_the_last_candidate(void **state)
{
	struct bid_actions actions;
	struct rig rig;

	set_before_whole_files(&rig);
	assert_true(take(&rig, BID_EVENT_REPORTED, 0).whole_file);
	/* another lookup leaves it running */
	actions = take(&rig, BID_EVENT_START, BID_NO_CANDIDATE);
	assert_false(actions.end || actions.whole_file);
	assert_true(take(&rig, BID_EVENT_WHOLE_FILE_FAILED, BID_NO_CANDIDATE).whole_file);
	actions = take(&rig, BID_EVENT_WHOLE_FILE_FAILED, BID_NO_CANDIDATE);
	assert_true(actions.end);
	assert_int_equal(actions.ended_as, BID_DOWNLOAD_RUNNING);
}

static void assert_event_ends_whole_file(enum bid_machine_event event, enum bid_download_state ended_as)
{
	struct bid_actions actions;
	struct rig rig;

	set_before_whole_files(&rig);
	take(&rig, BID_EVENT_REPORTED, 0);
	actions = take(&rig, event, BID_NO_CANDIDATE);
	assert_true(actions.cancel_whole_file);
	assert_false(actions.end);
	actions = take(&rig, BID_EVENT_WHOLE_FILE_FAILED, BID_NO_CANDIDATE);
	assert_true(actions.end);
	assert_int_equal(actions.ended_as, ended_as);
}

static void test_cancel_and_end_of_wait_end_the_whole_file(void **state)
{
	assert_event_ends_whole_file(BID_EVENT_CANCEL, BID_DOWNLOAD_CANCELLED);
	assert_event_ends_whole_file(BID_EVENT_TIMEOUT, BID_DOWNLOAD_TIMED_OUT);
}

/* Its result is none for a late reader: a whole file may have the section. */
static void test_unwanted_download_with_whole_files_ends_as_cancelled(void **state)
{
	struct bid_actions actions;
	struct rig rig;

	set_before_whole_files(&rig);
	rig.machine.unwanted = true;
	actions = take(&rig, BID_EVENT_REPORTED, 0);
	assert_true(actions.end);
	assert_false(actions.whole_file);
	assert_int_equal(actions.ended_as, BID_DOWNLOAD_CANCELLED);
}

/* Has the candidate no attempt? */
static bool is_idle(const struct bid_candidate *candidate)
{
	return candidate->state <= BID_CANDIDATE_IDLE_AGAIN || candidate->state == BID_CANDIDATE_DONE;
}

/* The driver sends no event of an attempt that does not exist. */
static bool is_possible(const struct bid_candidate *candidate, enum bid_machine_event event)
{
	switch (event) {
	case BID_EVENT_REPORTED:
		return candidate->state == BID_CANDIDATE_DECIDING || candidate->state == BID_CANDIDATE_QUEUED;
	case BID_EVENT_DROPPED:
		return candidate->state == BID_CANDIDATE_DECIDING || candidate->state == BID_CANDIDATE_DROPPING;
	default:
		return !is_idle(candidate) && candidate->state != BID_CANDIDATE_DECIDING &&
		       candidate->state != BID_CANDIDATE_DROPPING;
	}
}

/* Returns an event towards the end of the attempt of @candidate. */
static enum bid_machine_event event_to_end(const struct bid_candidate *candidate)
{
	return candidate->state == BID_CANDIDATE_DECIDING   ? BID_EVENT_REPORTED
	       : candidate->state == BID_CANDIDATE_DROPPING ? BID_EVENT_DROPPED
							    : BID_EVENT_DONE;
}

static void check(const struct rig *rig, const struct bid_actions *actions, bool had_ended)
{
	unsigned n_chosen = 0;

	for (size_t i = 0; i < N; i++) {
		n_chosen += rig->candidates[i].state == BID_CANDIDATE_CHOSEN;
		if (actions->cancel & UINT64_C(1) << i)
			assert_int_equal(rig->candidates[i].state, BID_CANDIDATE_STOPPED);
	}
	assert_true(n_chosen <= 1);
	if (actions->start != BID_NO_CANDIDATE) {
		assert_int_equal(rig->machine.state, BID_DOWNLOAD_RUNNING);
		assert_int_equal(rig->candidates[actions->start].state, BID_CANDIDATE_QUEUED);
	}
	if (!actions->end)
		return;
	assert_false(had_ended);
	for (size_t i = 0; i < N; i++)
		assert_true(is_idle(&rig->candidates[i]));
}

/* Any series of events ends in one end, once all attempts have ended. */
static void test_any_series_of_events_ends_once(void **state)
{
	unsigned seed = 1;

	for (unsigned round = 0; round < 20000; round++) {
		unsigned ends = 0;
		struct rig rig;

		set(&rig, BID_DOWNLOAD_NEW, BID_CANDIDATE_IDLE);
		for (unsigned step = 0; step < 200 && ends == 0; step++) {
			bool had_ended = rig.machine.state == BID_DOWNLOAD_ENDED;
			enum bid_machine_event event = (enum bid_machine_event)(rand_r(&seed) % BID_EVENTS);
			size_t i = event >= BID_EVENT_SENT ? (size_t)rand_r(&seed) % N : BID_NO_CANDIDATE;
			struct bid_actions actions;

			/* towards the end all attempts end */
			if (step > 100) {
				i = step % N;
				event = event_to_end(&rig.candidates[i]);
			}
			if (event == BID_EVENT_RESULT || (i != BID_NO_CANDIDATE && !is_possible(&rig.candidates[i], event)))
				continue;
			if (rig.machine.state == BID_DOWNLOAD_NEW && i != BID_NO_CANDIDATE)
				continue;
			actions = bid_machine_step(&rig.machine, event, i);
			check(&rig, &actions, had_ended);
			ends += actions.end;
		}
		assert_true(ends == 1 || rig.machine.state == BID_DOWNLOAD_NEW);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_event_in_every_state_of_an_attempt),
		cmocka_unit_test(test_every_event_in_every_state_of_a_download),
		cmocka_unit_test(test_response_counts_while_the_download_runs),
		cmocka_unit_test(test_silent_servers_are_hedged_one_by_one),
		cmocka_unit_test(test_chosen_one_stops_others_until_it_fails),
		cmocka_unit_test(test_broken_body_starts_the_next_candidate),
		cmocka_unit_test(test_offline_cancels_only_queued_attempts),
		cmocka_unit_test(test_absent_everywhere_ends_by_the_reports),
		cmocka_unit_test(test_whole_files_follow_the_last_candidate),
		cmocka_unit_test(test_cancel_and_end_of_wait_end_the_whole_file),
		cmocka_unit_test(test_unwanted_download_with_whole_files_ends_as_cancelled),
		cmocka_unit_test(test_any_series_of_events_ends_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
