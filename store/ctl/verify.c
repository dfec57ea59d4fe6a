// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl verify */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "api/evict.h"
#include "api/verify.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/refetch.h"
#include "ctl/sources.h"
#include "ctl/verify_against.h"

enum { REDRAW_MS = 100 };

struct checking {
	const struct ctl *ctl;
	struct ctl_progress progress;
	bool terminal; /* draw progress */
	int64_t drawn_ms;
	struct ctl_against *against; /* NULL without --against; owned */
	struct bid_request *removed; /* artifacts that a repair removed, to download again; owned, with their details */
	size_t n_removed, room;
	size_t fetched;
};

static int remember(struct checking *checking, const struct bid_request *request)
{
	if (bid_array_grow(checking->removed, checking->n_removed, checking->room) < 0)
		return -ENOMEM;
	checking->removed[checking->n_removed++] = bid_request_keep(request);
	return 0;
}

static json_t *finding_to_json(const struct bid_finding *finding)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "finding", bid_finding_name(finding->kind), "state",
			 finding->repaired ? "repaired" : "left", "stored", ctl_json_text(finding->path), "id",
			 ctl_json_id(&finding->request.id), "kind", ctl_json_kind(finding->request.kind), "reason",
			 ctl_json_text(finding->text));
}

static int found(void *user, const struct bid_finding *finding)
{
	struct checking *checking = user;
	const struct ctl *ctl = checking->ctl;

	ctl_progress_clear(&checking->progress);
	if (ctl->json) {
		ctl_row(ctl, finding_to_json(finding));
	} else {
		printf("%s%s%s: ", ctl_colour(stdout, finding->repaired ? CTL_BOLD : CTL_RED), bid_finding_name(finding->kind),
		       ctl_colour(stdout, CTL_PLAIN));
		ctl_print_text(stdout, finding->path);
		printf(": ");
		ctl_print_text(stdout, finding->text);
		puts(!ctl->repair ? "" : finding->repaired ? " [repaired]" : " [left as it is]");
	}
	return finding->name_free && bid_kind_fetchable(finding->request.kind) ? remember(checking, &finding->request) : 0;
}

static int compare(void *user, const struct bid_request *request, const char *path, int fd,
		   char ret_text[static BID_VERIFY_TEXT_MAX])
{
	const struct checking *checking = user;

	return ctl_against_compare(checking->against, request, path, fd, ret_text);
}

static int show_progress(void *user, const struct bid_verify_stats *stats)
{
	struct checking *checking = user;
	int64_t now = bid_clock_ms();
	char bytes[CTL_SIZE_MAX];

	if (now - checking->drawn_ms < REDRAW_MS || !checking->terminal)
		return 0;
	checking->drawn_ms = now;
	fprintf(stderr, "\rchecking: %" PRIu64 " objects, %" PRIu64 " links", stats->objects, stats->links);
	if (stats->bytes)
		fprintf(stderr, ", %s", ctl_format_size(stats->bytes, bytes));
	fputs("\033[K", stderr);
	fflush(stderr);
	checking->progress.drawn = true;
	return 0;
}

/* Does @store have the artifact of @request under another name? */
static bool is_stored(struct bid_store *store, const struct bid_request *request)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_store_find(store, request, &file) == 0 && file.kind == request->kind;
}

/* Download the artifacts again that the repair moved to the quarantine. */
static enum ctl_status fetch_again(struct checking *checking, struct bid_store *store)
{
	struct ctl_sources sources = CTL_SOURCES_NONE;
	enum ctl_status status = CTL_DONE;

	if (checking->n_removed == 0 || checking->ctl->offline)
		return CTL_DONE;
	status = ctl_sources_init(&sources, checking->ctl, store);
	for (size_t i = 0; status == CTL_DONE && bid_broker_has_sources(sources.broker) && i < checking->n_removed; i++) {
		const struct bid_request *request = &checking->removed[i];
		char hex[BID_ID_HEX_MAX];
		int r;

		if (is_stored(store, request))
			continue;
		r = ctl_refetch(sources.broker, request);
		if (r == 0)
			checking->fetched++;
		else
			bid_warning("%s: fetching %s of '%s' again", bid_strerror(r), bid_kind_name(request->kind),
				    bid_id_format(&request->id, hex));
	}
	ctl_sources_release(&sources);
	return status;
}

static uint64_t sum_of(const struct bid_verify_stats *stats)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		sum += stats->found[kind];
	return sum;
}

static void report(const struct checking *checking, struct bid_store *store, const struct bid_verify_stats *stats)
{
	struct bid_forgotten kept = { 0 }, gone;
	uint64_t sum = sum_of(stats);
	json_t *counts, *totals;

	/* quarantined files are no fault of the store, but of interest here; an absent default store has none */
	if (store)
		bid_store_forget(store, INT64_MIN, true, &kept, &gone);
	if (checking->against)
		ctl_against_report(checking->against);
	if (!checking->ctl->json) {
		ctl_summary(checking->ctl, "checked %" PRIu64 " names, %" PRIu64 " objects, %" PRIu64 " links, %" PRIu64 " records",
			    stats->names, stats->objects, stats->links, stats->records);
		if (checking->ctl->deep)
			ctl_summary(checking->ctl, ", %" PRIu64 " digests", stats->digests);
		ctl_summary(checking->ctl, "; found %" PRIu64, sum);
		if (checking->ctl->repair)
			ctl_summary(checking->ctl, ", repaired %" PRIu64 ", fetched again %zu", sum - stats->left,
				    checking->fetched);
		if (checking->against)
			ctl_against_summarise(checking->against);
		ctl_summary(checking->ctl, "; foreign files %" PRIu64 "\n", stats->foreign);
		if (kept.quarantined > 0)
			ctl_summary(checking->ctl, "wrong files in quarantine: %u - 'bidctl quarantine' lists them\n",
				    kept.quarantined);
		return;
	}
	counts = json_object();
	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		json_object_set_new(counts, bid_finding_name((enum bid_finding_kind)kind),
				    json_integer((json_int_t)stats->found[kind]));
	totals = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:i}", "names", (json_int_t)stats->names, "objects",
			   (json_int_t)stats->objects, "links", (json_int_t)stats->links, "records", (json_int_t)stats->records,
			   "digests", (json_int_t)stats->digests, "size", (json_int_t)stats->bytes, "foreign",
			   (json_int_t)stats->foreign, "found", counts, "left", (json_int_t)stats->left, "fetched",
			   (json_int_t)checking->fetched, "quarantined", (int)kept.quarantined);
	if (checking->against)
		ctl_against_add_totals(checking->against, totals);
	ctl_totals(checking->ctl, totals);
}

static enum ctl_status check(struct checking *checking, struct bid_store *store, const struct bid_id *ids, size_t n)
{
	const struct ctl *ctl = checking->ctl;
	struct bid_verify_config config = {
		.deep = ctl->deep,
		.repair = ctl->repair,
		.jobs = ctl->jobs,
		.ids = n ? ids : NULL,
		.n_ids = n,
		.found = found,
		.compare = checking->against ? compare : NULL,
		.progress = show_progress,
		.user = checking,
	};
	struct bid_verify_stats stats = { 0 };
	enum ctl_status status;
	int r = store ? bid_store_verify(store, &config, &stats) : 0;

	ctl_progress_clear(&checking->progress);
	if (r < 0) {
		bid_error_about(bid_store_path(store), r, "%s: checking the store", bid_strerror(r));
		return CTL_TROUBLE;
	}
	status = fetch_again(checking, store);
	report(checking, store, &stats);
	if (status == CTL_DONE && n > 0 && stats.names + stats.objects + stats.links + stats.records == 0) {
		bid_error_about(bid_store_path(store), -ENOENT, "the store has nothing of %s",
				n == 1 ? "this build" : "these builds");
		return CTL_REFUSED;
	}
	return status == CTL_DONE && sum_of(&stats) > 0 ? CTL_REFUSED : status;
}

enum ctl_status ctl_verify(const struct ctl *ctl, int argc, char **argv)
{
	struct checking checking = { .ctl = ctl, .terminal = ctl_progress_is_drawn() };
	bid_auto_free struct bid_id *ids = calloc((size_t)argc + 1, sizeof(*ids));
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status;

	if (!ids)
		return CTL_TROUBLE;
	if ((ctl->urls.n > 0 || ctl->offline) && !ctl->repair)
		return ctl_usage(ctl->offline ? "--offline" : "--url", "only '--repair' asks servers");
	if (ctl->against && ctl->repair)
		return ctl_usage("--against", "'--against' repairs nothing");
	status = ctl_sources_check(ctl);
	if (status == CTL_DONE)
		status = ctl_open_store(ctl, ctl->repair ? CTL_WRITE : CTL_READ_ITSELF, &store);
	for (int i = 0; status == CTL_DONE && i < argc; i++)
		status = ctl_which_build(store, argv[i], &ids[i]);
	if (status == CTL_DONE && ctl->against)
		status = ctl_against_load(ctl, &checking.against);
	if (status == CTL_DONE)
		status = check(&checking, store, ids, (size_t)argc);
	ctl_against_free(checking.against);
	for (size_t i = 0; i < checking.n_removed; i++)
		bid_request_release(&checking.removed[i]);
	free(checking.removed);
	return status;
}
