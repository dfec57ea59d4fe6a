// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/fallback.h"

#include <stdlib.h>
#include <string.h>

#include <bid/piece.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/trouble.h"

#define FLIGHTS_MAX 3 /* of the section, the debuginfo and the ELF file */

struct bid_instead {
	struct bid_request section; /* kept */
	size_t tried; /* files that it may be in */
	int trouble; /* what else than "no" was said, of the section until a whole file was found, or of one that it may be in */
	struct bid_flight *flights[FLIGHTS_MAX]; /* that were waited for; with a reference each */
	size_t n_flights;
	struct bid_verdict *verdicts; /* of all of them, for bid_instead_tell(); owned */
};

int bid_instead_new(const struct bid_request *section, struct bid_instead **ret_instead)
{
	struct bid_instead *instead = calloc(1, sizeof(*instead));

	if (!instead)
		return -ENOMEM;
	instead->section = bid_request_keep(section);
	*ret_instead = instead;
	return 0;
}

static void note_flight(struct bid_instead *instead, struct bid_flight *flight)
{
	struct bid_broker *broker;

	if (!flight || instead->n_flights == FLIGHTS_MAX)
		return;
	broker = flight->broker;
	pthread_mutex_lock(&broker->lock);
	bid_flight_ref(flight);
	pthread_mutex_unlock(&broker->lock);
	instead->flights[instead->n_flights++] = flight;
}

/*
 * @flight has come to @error: is there any use in asking for something else? Servers that do not know sections say so in many ways,
 * and one of several may be dead; but if all are, they are for everything.
 */
static bool leaves_hope(int error, const struct bid_flight *flight)
{
	if (error == 0 || error == -ENOENT || bid_is_unusable(error))
		return true;
	if (error != -EHOSTUNREACH || !flight)
		return false;
	for (size_t i = 0; i < flight->n_verdicts; i++) {
		enum bid_outcome outcome = flight->verdicts[i].outcome;

		if (bid_outcome_is_no(outcome) || outcome == BID_OUTCOME_REFUSED || outcome == BID_OUTCOME_REJECTED)
			return true;
	}
	return false;
}

/* What to ask for, now that the last has come to @error: -EINPROGRESS and @ret_whole, or what there is to answer. */
static int next(struct bid_broker *broker, struct bid_instead *instead, int error, const struct bid_flight *flight,
		struct bid_request *ret_whole, struct bid_file *ret_file)
{
	enum bid_kind kind;

	if ((error == 0 && instead->tried == 0) || !leaves_hope(error, flight))
		return error;
	if (instead->tried > 0) {
		int r = bid_broker_look(broker, &instead->section, ret_file, NULL);

		if (r != -EINPROGRESS)
			return r;
	}
	/* what is in a file the file itself tells, and no server needs to */
	if (error == 0 && instead->tried == 1)
		instead->trouble = 0;
	else if (error != 0 && error != -ENOENT && instead->trouble == 0)
		instead->trouble = error;
	kind = bid_section_whole(instead->tried);
	if (kind == BID_KIND_NONE)
		return instead->trouble ? instead->trouble : -ENOENT;
	instead->tried++;
	*ret_whole = (struct bid_request){ .id = instead->section.id, .kind = kind };
	return -EINPROGRESS;
}

int bid_instead_step(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_flight *flight,
		     struct bid_file *ret_file)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_request whole;
	int r;

	note_flight(waiter->instead, flight);
	r = next(broker, waiter->instead, error, flight, &whole, &file);
	if (r == -EINPROGRESS) {
		bid_broker_seek(broker, waiter, &whole);
		return r;
	}
	pthread_mutex_lock(&broker->lock);
	if (waiter->cancelled)
		r = -EINTR;
	bid_tickets_take(&broker->tickets, waiter);
	pthread_mutex_unlock(&broker->lock);
	if (r == 0 && file.fd >= 0) {
		*ret_file = file;
		file.fd = -1;
	}
	return r;
}

void bid_instead_tell(struct bid_instead *instead, struct bid_result *result)
{
	size_t n = 0;

	for (size_t i = 0; i < instead->n_flights; i++)
		n += instead->flights[i]->n_verdicts;
	if (n == result->n_verdicts)
		return;
	instead->verdicts = calloc(n, sizeof(*instead->verdicts));
	if (!instead->verdicts) {
		bid_warning("out of memory: what servers said is not told in full");
		return;
	}
	result->n_verdicts = 0;
	for (size_t i = 0; i < instead->n_flights; i++) {
		const struct bid_flight *flight = instead->flights[i];

		/* one that others still wait for may have more of them by now */
		for (size_t k = 0; k < flight->n_verdicts && result->n_verdicts < n; k++)
			instead->verdicts[result->n_verdicts++] = flight->verdicts[k];
	}
	result->verdicts = instead->verdicts;
}

void bid_instead_free(struct bid_instead *instead)
{
	if (!instead)
		return;
	for (size_t i = 0; i < instead->n_flights; i++)
		bid_flight_put(instead->flights[i]);
	bid_request_release(&instead->section);
	free(instead->verdicts);
	free(instead);
}
