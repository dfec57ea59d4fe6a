// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/machine.h"

static bool has_candidate(const struct bid_machine *machine, enum bid_candidate_state from, enum bid_candidate_state to)
{
	for (size_t i = 0; i < machine->n; i++)
		if (machine->candidates[i].state >= from && machine->candidates[i].state <= to)
			return true;
	return false;
}

static bool is_under_way(enum bid_candidate_state state)
{
	return state >= BID_CANDIDATE_QUEUED && state <= BID_CANDIDATE_CHOSEN;
}

static bool is_idle(enum bid_candidate_state state)
{
	return state == BID_CANDIDATE_IDLE || state == BID_CANDIDATE_IDLE_AGAIN;
}

bool bid_machine_is_cancellable(const struct bid_machine *machine)
{
	/* a complete body is committed for the next reader */
	return machine->state <= BID_DOWNLOAD_RUNNING && !has_candidate(machine, BID_CANDIDATE_DECIDING, BID_CANDIDATE_DECIDING);
}

bool bid_machine_wants_report(const struct bid_machine *machine, size_t candidate)
{
	/* a complete report counts, even from a cancelled attempt; but not after the end */
	return machine->candidates[candidate].state == BID_CANDIDATE_DECIDING &&
	       (machine->state == BID_DOWNLOAD_RUNNING || machine->state == BID_DOWNLOAD_TIMED_OUT);
}

/* Is no candidate chosen? Then a further one may start. */
static bool is_undecided(const struct bid_machine *machine)
{
	return machine->state == BID_DOWNLOAD_RUNNING && !has_candidate(machine, BID_CANDIDATE_CHOSEN, BID_CANDIDATE_DECIDING);
}

static size_t find_next(const struct bid_machine *machine)
{
	for (size_t i = 0; i < machine->n; i++)
		if (is_idle(machine->candidates[i].state) && !machine->candidates[i].broken)
			return i;
	return BID_NO_CANDIDATE;
}

static void stop_candidate(struct bid_machine *machine, size_t i, struct bid_actions *actions)
{
	machine->candidates[i].state = BID_CANDIDATE_STOPPED;
	actions->cancel |= UINT64_C(1) << i;
}

/* Stop all attempts in the states @from to @to, except @but. */
static void stop_candidates(struct bid_machine *machine, enum bid_candidate_state from, enum bid_candidate_state to, size_t but,
			    struct bid_actions *actions)
{
	for (size_t i = 0; i < machine->n; i++)
		if (i != but && machine->candidates[i].state >= from && machine->candidates[i].state <= to)
			stop_candidate(machine, i, actions);
}

static void abandon_download(struct bid_machine *machine, enum bid_download_state state, struct bid_actions *actions)
{
	machine->state = state;
	actions->cancel_whole_file = machine->awaits_whole_file;
	stop_candidates(machine, BID_CANDIDATE_QUEUED, BID_CANDIDATE_CHOSEN, BID_NO_CANDIDATE, actions);
}

static void step_download(struct bid_machine *machine, enum bid_machine_event event, struct bid_actions *actions)
{
	switch (event) {
	case BID_EVENT_START:
		if (machine->state == BID_DOWNLOAD_NEW)
			machine->state = BID_DOWNLOAD_RUNNING;
		break;
	case BID_EVENT_CANCEL:
		if (bid_machine_is_cancellable(machine))
			abandon_download(machine, BID_DOWNLOAD_CANCELLED, actions);
		break;
	case BID_EVENT_TIMEOUT:
		if (bid_machine_is_cancellable(machine) && !has_candidate(machine, BID_CANDIDATE_SENT, BID_CANDIDATE_CHOSEN))
			abandon_download(machine, BID_DOWNLOAD_TIMED_OUT, actions);
		break;
	case BID_EVENT_OFFLINE:
		stop_candidates(machine, BID_CANDIDATE_QUEUED, BID_CANDIDATE_QUEUED, BID_NO_CANDIDATE, actions);
		break;
	case BID_EVENT_RESULT:
		abandon_download(machine, BID_DOWNLOAD_ENDED, actions);
		break;
	case BID_EVENT_WHOLE_FILE_FAILED:
		machine->awaits_whole_file = false;
		break;
	default:
		break;
	}
}

static void step_candidate(struct bid_machine *machine, enum bid_machine_event event, size_t i, struct bid_actions *actions)
{
	struct bid_candidate *candidate = &machine->candidates[i];
	bool under_way = is_under_way(candidate->state);

	switch (event) {
	case BID_EVENT_SENT:
		if (candidate->state == BID_CANDIDATE_QUEUED)
			candidate->state = BID_CANDIDATE_SENT;
		break;
	case BID_EVENT_HEADER:
		if (under_way)
			candidate->state = BID_CANDIDATE_BODY;
		break;
	case BID_EVENT_CHECKED:
		if (!under_way)
			break;
		candidate->state = BID_CANDIDATE_CHOSEN;
		stop_candidates(machine, BID_CANDIDATE_QUEUED, BID_CANDIDATE_CHOSEN, i, actions);
		break;
	case BID_EVENT_BROKE_OFF:
		candidate->broken = true;
		if (!under_way)
			break;
		candidate->state = BID_CANDIDATE_BODY;
		break;
	case BID_EVENT_LOOP:
		if (under_way)
			stop_candidate(machine, i, actions);
		break;
	case BID_EVENT_DONE:
		if (under_way || candidate->state == BID_CANDIDATE_STOPPED)
			candidate->state = BID_CANDIDATE_DECIDING;
		break;
	case BID_EVENT_DONE_CANCELLED:
		/* the server cancelled by itself: a report like any other */
		if (under_way)
			candidate->state = BID_CANDIDATE_DECIDING;
		else if (candidate->state == BID_CANDIDATE_STOPPED)
			candidate->state = BID_CANDIDATE_DROPPING;
		break;
	case BID_EVENT_REPORTED:
		candidate->state = BID_CANDIDATE_DONE;
		break;
	case BID_EVENT_DROPPED:
		candidate->state = BID_CANDIDATE_IDLE_AGAIN;
		break;
	default:
		break;
	}
}

/*
 * Start the next candidate, or end the download. While no candidate is chosen, an event starts
 *
 *   START			the first candidate, unless an attempt is under way
 *   REPORTED, DROPPED	the next one in place of the attempt that ended
 *   TIMER, BROKE_OFF	one more
 */
static void start_next_or_end(struct bid_machine *machine, enum bid_machine_event event, struct bid_actions *actions)
{
	bool busy = has_candidate(machine, BID_CANDIDATE_QUEUED, BID_CANDIDATE_DROPPING) || machine->awaits_whole_file;
	size_t next = BID_NO_CANDIDATE;
	bool more;

	if (is_undecided(machine) &&
	    (event != BID_EVENT_START || !has_candidate(machine, BID_CANDIDATE_QUEUED, BID_CANDIDATE_CHOSEN)))
		next = find_next(machine);
	more = busy || next != BID_NO_CANDIDATE || machine->whole_files_tried < machine->whole_files;
	if (machine->unwanted && more && machine->state == BID_DOWNLOAD_RUNNING && bid_machine_is_cancellable(machine))
		abandon_download(machine, BID_DOWNLOAD_CANCELLED, actions);
	if (machine->state == BID_DOWNLOAD_RUNNING && next != BID_NO_CANDIDATE) {
		machine->candidates[next].state = BID_CANDIDATE_QUEUED;
		actions->start = next;
	} else if (!busy && machine->state == BID_DOWNLOAD_RUNNING && machine->whole_files_tried < machine->whole_files) {
		machine->whole_files_tried++;
		machine->awaits_whole_file = true;
		actions->whole_file = true;
	} else if (!busy && machine->state >= BID_DOWNLOAD_RUNNING && machine->state <= BID_DOWNLOAD_TIMED_OUT) {
		actions->end = true;
		actions->ended_as = machine->state;
		machine->state = BID_DOWNLOAD_ENDED;
	}
}

static enum bid_hedge hedge_of(const struct bid_machine *machine, enum bid_machine_event event, bool starts)
{
	if (!is_undecided(machine))
		return BID_HEDGE_STOP;
	if (event == BID_EVENT_HEADER)
		return BID_HEDGE_AFTER_HEADER;
	return starts || event == BID_EVENT_TIMER ? BID_HEDGE_AFTER_START : BID_HEDGE_KEEP;
}

struct bid_actions bid_machine_step(struct bid_machine *machine, enum bid_machine_event event, size_t candidate)
{
	/* other events start and end nothing */
	bool starts = event == BID_EVENT_START || event == BID_EVENT_TIMER || event == BID_EVENT_BROKE_OFF ||
		      event == BID_EVENT_REPORTED || event == BID_EVENT_DROPPED || event == BID_EVENT_WHOLE_FILE_FAILED;
	struct bid_actions actions = { .start = BID_NO_CANDIDATE };

	if (candidate == BID_NO_CANDIDATE)
		step_download(machine, event, &actions);
	else
		step_candidate(machine, event, candidate, &actions);
	if (starts)
		start_next_or_end(machine, event, &actions);
	actions.hedge = hedge_of(machine, event, actions.start != BID_NO_CANDIDATE);
	return actions;
}
