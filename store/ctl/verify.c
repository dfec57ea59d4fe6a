// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl verify */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <bid/error.h>

#include "api/evict.h"
#include "api/verify.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/fetch_all.h"
#include "ctl/output.h"
#include "ctl/servers.h"
#include "ctl/verify_against.h"

struct checking {
	const struct ctl *ctl;
	struct ctl_progress progress;
	struct ctl_against *against; /* NULL without --against; owned */
	struct bid_artifact *removed; /* artifacts that a repair removed, to download again; owned, with their subpaths */
	size_t n_removed, room;
	size_t fetched;
};

static int remember_removed(struct checking *checking, const struct bid_artifact *artifact)
{
	if (bid_array_grow(checking->removed, checking->n_removed, checking->room) < 0)
		return -ENOMEM;
	checking->removed[checking->n_removed++] = bid_artifact_copy(artifact);
	return 0;
}

static int report_finding(void *user, const struct bid_finding *finding)
{
	struct checking *checking = user;
	const struct ctl *ctl = checking->ctl;

	ctl_progress_clear(&checking->progress);
	ctl_row(ctl, CTL_TEXT("finding", 10, bid_finding_name(finding->kind)), CTL_TEXT("stored", 0, finding->path),
		CTL_TEXT("reason", 0, finding->text),
		CTL_TEXT("state", ctl->repair ? 0 : CTL_HIDDEN, finding->repaired ? "repaired" : "left"),
		CTL_ID("id", CTL_HIDDEN, &finding->artifact.id), CTL_KIND("kind", CTL_HIDDEN, finding->artifact.kind));
	return finding->name_free && bid_kind_fetchable(finding->artifact.kind) ? remember_removed(checking, &finding->artifact)
										: 0;
}

static int compare_file(void *user, const struct bid_artifact *artifact, const char *path, int fd,
			char ret_text[static BID_VERIFY_TEXT_MAX])
{
	const struct checking *checking = user;

	return ctl_against_compare(checking->against, artifact, path, fd, ret_text);
}

static int show_progress(void *user, const struct bid_verify_stats *stats)
{
	struct checking *checking = user;
	char bytes[CTL_SIZE_MAX];

	ctl_progress_text(&checking->progress, "checking: %" PRIu64 " objects, %" PRIu64 " links%s%s", stats->objects, stats->links,
			  stats->bytes ? ", " : "", stats->bytes ? ctl_format_size(stats->bytes, bytes) : "");
	return 0;
}

/* Does @store have @artifact under another name? */
static bool is_stored(struct bid_store *store, const struct bid_artifact *artifact)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_store_find(store, artifact, BID_MAY_DERIVE, &file) == 0 && file.kind == artifact->kind;
}

/* Download the artifacts again that the repair moved to the quarantine. */
static enum ctl_status fetch_again(struct checking *checking, struct bid_store *store)
{
	bid_cleanup(ctl_wanted_release) struct ctl_wanted_list list = { 0 };
	enum ctl_status status;
	char hex[BID_ID_HEX_MAX];

	for (size_t i = 0; i < checking->n_removed && !checking->ctl->offline; i++)
		if (!is_stored(store, &checking->removed[i]) && ctl_want(&list, &checking->removed[i], NULL) < 0)
			return ctl_no_memory();
	status = ctl_fetch_all(checking->ctl, store, &list, 0);
	for (size_t i = 0; i < list.n && status == CTL_DONE; i++) {
		const struct ctl_wanted *wanted = &list.wanted[i];

		checking->fetched += wanted->error == 0;
		/* without a response no server is configured */
		if (wanted->error < 0 && wanted->why)
			bid_warning("%s: fetching %s of '%s' again", wanted->why, bid_kind_name(wanted->artifact.kind),
				    bid_id_format(&wanted->artifact.id, hex));
	}
	return status;
}

static uint64_t sum_of(const struct bid_verify_stats *stats)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		sum += stats->found[kind];
	return sum;
}

static void report_stats(const struct checking *checking, struct bid_store *store, const struct bid_verify_stats *stats)
{
	struct bid_forgotten kept = { 0 }, gone;
	const struct ctl *ctl = checking->ctl;
	size_t vouched = 0, unlisted = 0;
	json_t *counts = json_object();

	/* quarantined files are no fault of the store, but of interest here; an absent default store has none */
	if (store)
		bid_store_forget(store, INT64_MIN, true, &kept, &gone);
	if (checking->against)
		ctl_against_report(checking->against, &vouched, &unlisted);
	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		json_object_set_new(counts, bid_finding_name((enum bid_finding_kind)kind),
				    json_integer((json_int_t)stats->found[kind]));
	ctl_totals(ctl, CTL_NUMBER("names", 0, stats->names), CTL_NUMBER("objects", 0, stats->objects),
		   CTL_NUMBER("links", 0, stats->links), CTL_NUMBER("records", 0, stats->records),
		   CTL_NUMBER("digests", ctl->deep ? 0 : CTL_HIDDEN, stats->digests), CTL_SIZE("size", CTL_HIDDEN, stats->bytes),
		   CTL_NUMBER("found", 0, sum_of(stats)), CTL_JSON("findings", counts),
		   CTL_NUMBER("repaired", ctl->repair ? 0 : CTL_HIDDEN, sum_of(stats) - stats->left),
		   CTL_NUMBER("left", CTL_HIDDEN, stats->left),
		   CTL_NUMBER("fetched", ctl->repair ? 0 : CTL_HIDDEN, checking->fetched),
		   CTL_NUMBER("vouched", checking->against ? 0 : CTL_HIDDEN, vouched),
		   CTL_NUMBER("unlisted", checking->against ? 0 : CTL_HIDDEN, unlisted), CTL_NUMBER("foreign", 0, stats->foreign),
		   CTL_NUMBER("quarantined", kept.quarantined ? 0 : CTL_HIDDEN, kept.quarantined));
}

static enum ctl_status check_store(struct checking *checking, struct bid_store *store, const struct bid_id *ids, size_t n)
{
	const struct ctl *ctl = checking->ctl;
	struct bid_verify_config config = {
		.deep = ctl->deep,
		.repair = ctl->repair,
		.jobs = ctl->jobs,
		.ids = n ? ids : NULL,
		.n_ids = n,
		.found = report_finding,
		.compare = checking->against ? compare_file : NULL,
		.progress = show_progress,
		.user = checking,
	};
	struct bid_verify_stats stats = { 0 };
	enum ctl_status status;
	int r = store ? bid_store_verify(store, &config, &stats) : 0;

	ctl_progress_clear(&checking->progress);
	if (r < 0)
		return ctl_trouble(bid_store_path(store), r, "check the store");
	status = fetch_again(checking, store);
	report_stats(checking, store, &stats);
	if (status == CTL_DONE && n > 0 && stats.names + stats.objects + stats.links + stats.records == 0) {
		bid_error_about(bid_store_path(store), -ENOENT, "the store has nothing of %s",
				n == 1 ? "this build" : "these builds");
		return CTL_REFUSED;
	}
	return status == CTL_DONE && sum_of(&stats) > 0 ? CTL_REFUSED : status;
}

enum ctl_status ctl_verify(const struct ctl *ctl, int argc, char **argv)
{
	struct checking checking = { .ctl = ctl };
	bid_auto_free struct bid_id *ids = calloc((size_t)argc + 1, sizeof(*ids));
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status;

	if (!ids)
		return CTL_TROUBLE;
	if ((ctl->urls.n > 0 || ctl->offline) && !ctl->repair)
		return ctl_usage(ctl->offline ? "--offline" : "--url", "only '--repair' asks servers");
	if (ctl->against && ctl->repair)
		return ctl_usage("--against", "'--against' repairs nothing");
	status = ctl_servers_check(ctl);
	if (status == CTL_DONE)
		status = ctl_open_store(ctl, ctl->repair ? CTL_WRITE : CTL_READ_ITSELF, &store);
	for (int i = 0; status == CTL_DONE && i < argc; i++)
		status = ctl_which_build(store, argv[i], &ids[i]);
	if (status == CTL_DONE && ctl->against)
		status = ctl_against_load(ctl, &checking.against);
	if (status == CTL_DONE)
		status = check_store(&checking, store, ids, (size_t)argc);
	ctl_against_free(checking.against);
	for (size_t i = 0; i < checking.n_removed; i++)
		bid_artifact_release(&checking.removed[i]);
	free(checking.removed);
	return status;
}
