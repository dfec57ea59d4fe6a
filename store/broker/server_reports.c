// SPDX-License-Identifier: LGPL-2.1-or-later
/* Outcomes of servers: reports of a download, the error that follows, the ring of the last reports, counters, messages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/artifact.h"
#include "base/clock.h"
#include "base/log.h"
#include "broker/download.h"

#define QUIET_MS 10000 /* between two equal messages */

void bid_report_unref(struct bid_report *report)
{
	if (--report->refs > 0)
		return;
	bid_artifact_release(&report->artifact);
	free((char *)report->text);
	free((char *)report->url);
	free((char *)report->redirect);
	free((char *)report->before);
	free(report);
}

/* Returns the @age-th last report, or NULL. */
static struct bid_report *last_report(const struct bid_broker *broker, size_t age)
{
	bool is_there = age < broker->n_reports && age < BID_REPORTS_MAX;

	return is_there ? broker->reports[(broker->n_reports - 1 - age) % BID_REPORTS_MAX] : NULL;
}

void bid_broker_drop_reports(struct bid_broker *broker)
{
	struct bid_report *report;

	for (size_t age = 0; (report = last_report(broker, age)); age++)
		bid_report_unref(report);
}

/* Copy @from, except the server's name. Returns NULL without memory. */
static struct bid_report *report_new(const struct bid_report *from)
{
	struct bid_report *report = malloc(sizeof(*report));

	if (!report)
		return NULL;
	*report = *from;
	report->refs = 1;
	report->count = 1;
	report->first_time = from->time;
	report->artifact = bid_artifact_copy(&from->artifact);
	report->text = strdup(from->text);
	report->url = bid_text_copy(from->url);
	report->redirect = bid_text_copy(from->redirect);
	report->before = bid_text_copy(from->before);
	if (!report->text) {
		bid_report_unref(report);
		return NULL;
	}
	return report;
}

static bool has_same_outcome(const struct bid_report *one, const struct bid_report *other)
{
	return one->server == other->server && one->outcome == other->outcome && strcmp(one->text, other->text) == 0;
}

static bool is_same_request(const struct bid_report *one, const struct bid_report *other)
{
	return one->server == other->server && bid_artifact_equal(&one->artifact, &other->artifact);
}

/*
 * Add @report with a reference, and count equal ones. Returns whether the log needs a message: true without an equal one lately.
 * Under the lock.
 */
static bool add_to_ring(struct bid_broker *broker, struct bid_report *report)
{
	int64_t now = bid_clock_ms();
	struct bid_report *other;
	bool due;

	for (size_t age = 0; (other = last_report(broker, age)); age++) {
		if (!has_same_outcome(other, report))
			continue;
		report->count += other->count;
		report->first_time = other->first_time;
		report->logged_ms = other->logged_ms;
		break;
	}
	due = report->logged_ms == 0 || now - report->logged_ms >= QUIET_MS;
	if (due)
		report->logged_ms = now;
	if (broker->n_reports >= BID_REPORTS_MAX)
		bid_report_unref(last_report(broker, BID_REPORTS_MAX - 1));
	report->refs++;
	broker->reports[broker->n_reports++ % BID_REPORTS_MAX] = report;
	return due;
}

void bid_attempt_count(const struct bid_attempt *attempt, enum bid_outcome outcome)
{
	struct bid_server_stats *stats = &attempt->from->stats;

	if (attempt->report.not_sent)
		return;
	stats->requests++;
	stats->outcomes[(unsigned)outcome < BID_OUTCOME_COUNT ? outcome : BID_OUTCOME_NONE]++;
	stats->bytes += attempt->delivered;
}

const char *bid_artifact_name(const struct bid_artifact *artifact, char buf[static BID_NAME_MAX])
{
	char hex[BID_ID_HEX_MAX];

	snprintf(buf, BID_NAME_MAX, "%s/%s%s%s", bid_id_format(&artifact->id, hex), bid_kind_name(artifact->kind),
		 artifact->kind == BID_KIND_SECTION ? "/" : "", bid_subpath_text(artifact->subpath));
	return buf;
}

static void log_report(const struct bid_download *download, const char *name, enum bid_outcome outcome, const char *text)
{
	char buf[BID_NAME_MAX];

	switch (outcome) {
	case BID_OUTCOME_REJECTED:
		bid_warning("%s: refused '%s' from %s", text, bid_artifact_name(&download->artifact, buf), name);
		break;
	case BID_OUTCOME_FAILED:
		bid_warning("%s: cannot keep '%s' from %s", text, bid_artifact_name(&download->artifact, buf), name);
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

/*
 * Report the check of a body to its server. A digest other than the first one is no failure. A page without an id is no success,
 * because any server may send one. Without the lock.
 */
static void report_check(const struct bid_attempt *attempt, enum bid_outcome outcome, const char *text)
{
	struct bid_server *server = attempt->from->server;
	bool right = outcome == BID_OUTCOME_FOUND && bid_kind_is_elf(attempt->download->artifact.kind);

	if (right || (outcome == BID_OUTCOME_REJECTED && attempt->error != -ESTALE))
		server->ops->note_check(server, right, text);
}

/* Add @report with a reference; NULL without memory. Under the lock. */
static void add_report(struct bid_download *download, struct bid_report *report)
{
	/* a server has more than one report after an overtaken attempt */
	if (report && download->n_reports < download->max_reports) {
		report->refs++;
		download->reports[download->n_reports] = report;
		download->n_reports++;
	}
}

void bid_download_copy_reports(struct bid_download *download, const struct bid_download *other)
{
	for (size_t i = 0; i < other->n_reports; i++)
		add_report(download, other->reports[i]);
}

void bid_download_report_only(struct bid_download *download, const struct bid_candidate *candidate, enum bid_outcome outcome,
			      const char *text)
{
	struct bid_report *report = report_new(&(struct bid_report){
		.server = candidate->from->server->name,
		.artifact = download->artifact,
		.outcome = outcome,
		.text = text,
		.elapsed_ms = candidate->stopped_ms,
		.time = time(NULL),
	});

	add_report(download, report);
	if (report)
		bid_report_unref(report);
}

void bid_download_report_overtaken(struct bid_download *download)
{
	char text[BID_TEXT_MAX];

	if (!download->winner)
		return;
	snprintf(text, sizeof(text), "%s was faster", download->winner->server->name);
	for (size_t i = 0; i < download->machine.n; i++) {
		const struct bid_candidate *candidate = &download->machine.candidates[i];

		/* a server that is done has its report, and so has the winner */
		if (candidate->state == BID_CANDIDATE_IDLE || candidate->state == BID_CANDIDATE_DONE ||
		    candidate->from == download->winner)
			continue;
		bid_download_report_only(download, candidate, BID_OUTCOME_CANCELLED, text);
	}
}

void bid_download_report(struct bid_download *download, struct bid_attempt *attempt, enum bid_outcome outcome, const char *text)
{
	struct bid_broker *broker = download->broker;
	struct bid_report *report = report_new(&(struct bid_report){
		.server = attempt->from->server->name,
		.artifact = download->artifact,
		.outcome = outcome,
		.changed = outcome == BID_OUTCOME_REJECTED && attempt->error == -ESTALE,
		.text = text,
		.url = attempt->report.url,
		.redirect = attempt->report.redirect,
		.requests = attempt->report.requests,
		.before = attempt->report.before,
		.bytes = attempt->delivered,
		.received = attempt->received,
		.elapsed_ms = (unsigned)(bid_clock_ms() - attempt->started_ms),
		.time = time(NULL),
	});
	bool trouble = bid_outcome_is_failure(outcome), due = !report;

	if (outcome == BID_OUTCOME_REJECTED)
		atomic_fetch_add(&broker->counts.rejected, 1);
	pthread_mutex_lock(&broker->lock);
	if (report && outcome != BID_OUTCOME_CANCELLED)
		due = add_to_ring(broker, report);
	add_report(download, report);
	bid_attempt_count(attempt, outcome);
	download->no_room |= bid_attempt_has_no_room(attempt);
	if (outcome == BID_OUTCOME_FOUND) {
		broker->preferred = download->winner = attempt->from;
		snprintf(attempt->from->stats.signer, BID_SIGNER_MAX, "%s", attempt->signer);
	}
	if (report)
		bid_report_unref(report);
	pthread_mutex_unlock(&broker->lock);
	report_check(attempt, outcome, text);
	/* a message for each wrong body, because each is another artifact */
	if (trouble && (due || outcome == BID_OUTCOME_REJECTED))
		log_report(download, attempt->from->server->name, outcome, text);
}

int bid_download_reported_error(const struct bid_download *download)
{
	/* otherwise there was no memory for a report */
	bool all_no = download->n_reports >= download->machine.n;
	bool only_rejected = all_no;

	for (size_t i = 0; i < download->n_reports; i++) {
		enum bid_outcome outcome = download->reports[i]->outcome;

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
	if (download->no_room)
		return -ENOSPC;
	return only_rejected ? -EBADMSG : -EHOSTUNREACH;
}

bool bid_download_is_too_large(const struct bid_download *download)
{
	bool found = false;

	for (size_t i = 0; i < download->n_reports; i++) {
		enum bid_outcome outcome = download->reports[i]->outcome;

		if (outcome == BID_OUTCOME_TOO_LARGE)
			found = true;
		else if (!bid_outcome_is_no(outcome))
			return false;
	}
	return found;
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
		.negative_entries = bid_negative_count(broker->negative),
	};

	pthread_mutex_lock(&broker->lock);
	stats.downloads = broker->n_downloads - broker->n_dependents;
	stats.waiters = broker->n_waiting;
	pthread_mutex_unlock(&broker->lock);
	*ret_stats = stats;
}

int bid_broker_server_stats(struct bid_broker *broker, size_t index, struct bid_server_stats *ret_stats)
{
	struct bid_server *server;

	if (index >= broker->n_servers)
		return -ENOENT;
	pthread_mutex_lock(&broker->lock);
	*ret_stats = broker->servers[index].stats;
	ret_stats->preferred = &broker->servers[index] == broker->preferred;
	pthread_mutex_unlock(&broker->lock);
	server = broker->servers[index].server;
	ret_stats->enforces = server->signers != NULL;
	server->ops->health(server, &ret_stats->health);
	return 0;
}

/* Copy all reports with a reference, newest first. Returns their number. */
static size_t ref_all(struct bid_broker *broker, struct bid_report *ret_all[static BID_REPORTS_MAX])
{
	size_t n = 0;

	pthread_mutex_lock(&broker->lock);
	while (n < BID_REPORTS_MAX && (ret_all[n] = last_report(broker, n)))
		ret_all[n++]->refs++;
	pthread_mutex_unlock(&broker->lock);
	return n;
}

static void unref_all(struct bid_broker *broker, struct bid_report *all[], size_t n)
{
	pthread_mutex_lock(&broker->lock);
	for (size_t i = 0; i < n; i++)
		bid_report_unref(all[i]);
	pthread_mutex_unlock(&broker->lock);
}

/* Is @is of @report and one of the first @n of @all true? */
static bool is_among(struct bid_report *const all[], size_t n, const struct bid_report *report,
		     bool (*is)(const struct bid_report *, const struct bid_report *))
{
	for (size_t i = 0; i < n; i++)
		if (is(all[i], report))
			return true;
	return false;
}

/* Report the negative cache entry of @server and @artifact, perhaps of another process, if the ring has none. */
static int pass_negative(struct bid_broker *broker, const struct bid_artifact *artifact, size_t server,
			 struct bid_report *const all[], size_t n, bid_report_fn fn, void *user)
{
	struct bid_report report = {
		.artifact = *artifact,
		.server = broker->servers[server].server->name,
		.text = "same response earlier",
	};
	unsigned ttl;

	if (is_among(all, n, &report, is_same_request))
		return 0;
	report.outcome = bid_negative_lookup(broker->negative, artifact, report.server, &ttl);
	return report.outcome != BID_OUTCOME_NONE ? fn(user, &report, ttl) : 0;
}

static int pass_reports(struct bid_broker *broker, const struct bid_id *id, struct bid_report *const all[], size_t n,
			bid_report_fn fn, void *user)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct bid_report *report = all[i];
		unsigned ttl;

		if (!bid_id_equal(&report->artifact.id, id) || is_among(all, i, report, is_same_request))
			continue;
		if (bid_negative_lookup(broker->negative, &report->artifact, report->server, &ttl) != report->outcome)
			ttl = 0;
		r = fn(user, report, ttl);
	}
	for (int kind = BID_KIND_NONE + 1; r == 0 && kind < BID_KIND_COUNT; kind++) {
		struct bid_artifact artifact = { .id = *id, .kind = (enum bid_kind)kind };

		for (size_t i = 0; r == 0 && i < broker->n_servers && bid_kind_fetchable(artifact.kind); i++)
			r = pass_negative(broker, &artifact, i, all, n, fn, user);
	}
	return r;
}

int bid_broker_each_report(struct bid_broker *broker, const struct bid_id *id, bid_report_fn fn, void *user)
{
	struct bid_report *all[BID_REPORTS_MAX];
	size_t n = ref_all(broker, all);
	int r = pass_reports(broker, id, all, n, fn, user);

	unref_all(broker, all, n);
	return r;
}

void bid_broker_each_failure(struct bid_broker *broker, bid_report_fn fn, void *user)
{
	struct bid_report *all[BID_REPORTS_MAX];
	size_t n = ref_all(broker, all), n_passed = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n && n_passed < BID_FAILURES_MAX; i++) {
		if (!bid_outcome_is_failure(all[i]->outcome) || is_among(all, i, all[i], has_same_outcome))
			continue;
		n_passed++;
		r = fn(user, all[i], 0);
	}
	unref_all(broker, all, n);
}
