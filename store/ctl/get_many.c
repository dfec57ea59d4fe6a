// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl get --perf-data, --core, --pid and -: download all builds of a list before their use. */
#include "ctl/get_many.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/cover.h"
#include "ctl/dwz.h"
#include "ctl/fetch_all.h"
#include "ctl/output.h"
#include "ctl/sources.h"

enum state { HERE, ADDED, FETCHED, ABSENT, REFUSED, FAILED, INTERRUPTED, STATES };

static const char *const state_names[STATES] = {
	[HERE] = "here",       [ADDED] = "added",   [FETCHED] = "fetched",	   [ABSENT] = "absent",
	[REFUSED] = "refused", [FAILED] = "failed", [INTERRUPTED] = "interrupted",
};

struct getting {
	const struct ctl *ctl;
	struct bid_store *store; /* borrowed */
	struct ctl_recording needs;
	struct ctl_wanted *wanted; /* owned */
	const struct ctl_build **builds; /* for each of @wanted; owned */
	size_t n;
	int untold; /* error of the refresh of the mount over the store, or 0 */
	size_t counts[STATES];
	size_t unidentified; /* needed builds without an id */
	uint64_t bytes; /* downloaded */
};

static void getting_release(struct getting *getting)
{
	for (size_t i = 0; i < getting->n; i++)
		free(getting->wanted[i].why);
	free(getting->wanted);
	free(getting->builds);
	ctl_recording_release(&getting->needs);
}

/*
 * Add the files that are still at their paths: cheaper than a download, and servers may lack them. Fails for errors of the store
 * alone.
 */
static enum ctl_status add_local(struct getting *getting)
{
	for (size_t i = 0; i < getting->needs.n; i++) {
		struct ctl_build *build = &getting->needs.builds[i];
		int r;

		/* a guest's path is a path of another machine */
		if (build->id.len == 0 || build->path[0] != '/' || build->mode == BID_PERFDATA_GUEST)
			continue;
		if (build->state == CTL_BUILD_ADDED || build->state == CTL_BUILD_KNOWN)
			continue;
		r = ctl_add_build(getting->ctl, getting->store, build, NULL);
		if (r < 0) {
			bid_error_about(build->path, r, "%s: adding it to '%s'", bid_strerror(r), bid_store_path(getting->store));
			return CTL_TROUBLE;
		}
	}
	return CTL_DONE;
}

/* Order by id and kind, then by position in the list. */
static int by_request(const void *a, const void *b)
{
	const struct ctl_wanted *const *one = a, *const *two = b;
	int order = memcmp(&(*one)->request.id, &(*two)->request.id, sizeof((*one)->request.id));

	if (order == 0)
		order = (int)(*one)->request.kind - (int)(*two)->request.kind;
	return order ? order : *one < *two ? -1 : *one > *two;
}

/* Drop repeated requests: one id may have several names. Keeps the order. */
static int drop_doubles(struct getting *getting)
{
	bid_auto_free struct ctl_wanted **sorted = calloc(getting->n + 1, sizeof(struct ctl_wanted *));
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < getting->n; i++)
		sorted[i] = &getting->wanted[i];
	qsort(sorted, getting->n, sizeof(struct ctl_wanted *), by_request);
	for (size_t i = 1; i < getting->n; i++) {
		const struct bid_request *before = &sorted[i - 1]->request, *request = &sorted[i]->request;

		if (before->kind == request->kind && bid_id_equal(&before->id, &request->id))
			sorted[i]->error = -EEXIST;
	}
	for (size_t i = 0; i < getting->n; i++) {
		if (getting->wanted[i].error == -EEXIST)
			continue;
		getting->wanted[n] = getting->wanted[i];
		getting->builds[n++] = getting->builds[i];
	}
	getting->n = n;
	return 0;
}

static int make_list(struct getting *getting, enum bid_kind kind)
{
	static const enum bid_kind both[] = { BID_KIND_DEBUGINFO, BID_KIND_ELF };
	const enum bid_kind *kinds = kind ? &kind : both;
	size_t n_kinds = kind ? 1 : sizeof(both) / sizeof(both[0]);

	getting->wanted = calloc(n_kinds * getting->needs.n + 1, sizeof(*getting->wanted));
	getting->builds = calloc(n_kinds * getting->needs.n + 1, sizeof(*getting->builds));
	if (!getting->wanted || !getting->builds)
		return -ENOMEM;
	for (size_t i = 0; i < getting->needs.n; i++) {
		const struct ctl_build *build = &getting->needs.builds[i];

		/* only the kernel has a vDSO */
		if (build->id.len == 0 || ctl_build_is_vdso(build))
			continue;
		for (size_t k = 0; k < n_kinds; k++) {
			getting->wanted[getting->n].request = (struct bid_request){ .id = ctl_build_id(build), .kind = kinds[k] };
			getting->builds[getting->n++] = build;
		}
	}
	return drop_doubles(getting);
}

/* Add the dwz files that the present debug information refers to. */
static int add_dwz(struct getting *getting)
{
	size_t n = getting->n;
	struct ctl_wanted *wanted = reallocarray(getting->wanted, 2 * n, sizeof(*wanted));
	const struct ctl_build **builds;

	if (!wanted)
		return -ENOMEM;
	getting->wanted = wanted;
	builds = reallocarray(getting->builds, 2 * n, sizeof(*builds));
	if (!builds)
		return -ENOMEM;
	getting->builds = builds;
	for (size_t i = 0; i < n; i++) {
		struct bid_request request = { .kind = BID_KIND_DEBUGINFO };

		if (wanted[i].request.kind != BID_KIND_DEBUGINFO || wanted[i].error < 0)
			continue;
		request.id = ctl_dwz_of(getting->store, &wanted[i].request.id);
		if (request.id.len == 0)
			continue;
		wanted[getting->n] = (struct ctl_wanted){ .request = request };
		builds[getting->n++] = builds[i];
	}
	return drop_doubles(getting);
}

/* Report "absent" as "unknown", unless the mount over the store is sure that its servers lack the artifact. */
static void doubt(struct getting *getting, int64_t since)
{
	json_t *state = ctl_cover_state(bid_store_path(getting->store));

	for (size_t i = 0; state && i < getting->n; i++) {
		struct ctl_wanted *wanted = &getting->wanted[i];

		if (!bid_kind_fetchable(wanted->request.kind))
			continue;
		if (wanted->error == -ENOENT && !ctl_cover_is_sure(state, &wanted->request, since))
			wanted->error = -EHOSTUNREACH;
		if (wanted->error == -EHOSTUNREACH && !wanted->why && ctl_cover_is_offline(state))
			wanted->why = strdup(CTL_COVER_OFFLINE);
	}
	json_decref(state);
}

/* Report "absent" as "unknown" if servers exist, but none was used; one message for all. */
static void doubt_silence(struct getting *getting)
{
	size_t unknown = 0;

	if (!ctl_sources_are_barred(getting->ctl, getting->store))
		return;
	for (size_t i = 0; i < getting->n; i++) {
		struct ctl_wanted *wanted = &getting->wanted[i];

		if (wanted->error != -ENOENT || wanted->remembered_s > 0 || !bid_kind_fetchable(wanted->request.kind))
			continue;
		wanted->error = -EROFS;
		unknown++;
	}
	if (unknown > 0)
		bid_error_about(bid_store_path(getting->store), -EROFS, "the store cannot be written, so no server is asked");
}

/* Have the mount over the store, if any, retry the servers for the requests from @first on. */
static void refresh(struct getting *getting, size_t first)
{
	const struct ctl *ctl = getting->ctl;

	if ((!ctl->refresh && !ctl->accept) || first == getting->n)
		return;
	for (size_t i = first; i < getting->n && getting->untold == 0; i++)
		getting->untold = ctl_cover_refresh(bid_store_path(getting->store), &getting->wanted[i].request, ctl->accept);
	if (getting->untold == 0)
		ctl_cover_wait(bid_store_path(getting->store));
}

/* Report a failed refresh of the mount: one message for all, if an artifact is absent. */
static void complain_of_cover(struct getting *getting)
{
	const char *refusal = ctl_cover_refusal(getting->untold);
	size_t missing = 0;

	for (size_t i = 0; getting->untold < 0 && i < getting->n; i++) {
		struct ctl_wanted *wanted = &getting->wanted[i];

		if (wanted->error != -ENOENT || !bid_kind_fetchable(wanted->request.kind))
			continue;
		if (!refusal)
			wanted->error = getting->untold;
		missing++;
	}
	if (missing > 0 && refusal)
		bid_error_about(bid_store_path(getting->store), getting->untold, "%s", refusal);
	else if (missing > 0)
		bid_error_about(bid_store_path(getting->store), getting->untold,
				"%s: telling the mount that covers the store to ask again", bid_strerror(getting->untold));
}

/* Append the remedy to each cause. */
static void name_remedies(struct getting *getting)
{
	for (size_t i = 0; i < getting->n; i++) {
		struct ctl_wanted *wanted = &getting->wanted[i];
		char *text;

		if (!wanted->why || !wanted->changed || asprintf(&text, "%s; '--accept' takes them", wanted->why) < 0)
			continue;
		free(wanted->why);
		wanted->why = text;
	}
}

static enum ctl_status fetch(struct getting *getting)
{
	int64_t began = time(NULL);
	size_t first = getting->n;
	enum ctl_status status;

	refresh(getting, 0);
	status = ctl_fetch_all(getting->ctl, getting->store, getting->wanted, first);
	if (status == CTL_DONE && add_dwz(getting) < 0)
		status = ctl_no_memory();
	refresh(getting, first);
	if (status == CTL_DONE && getting->n > first)
		status = ctl_fetch_all(getting->ctl, getting->store, getting->wanted + first, getting->n - first);
	doubt(getting, began);
	doubt_silence(getting);
	complain_of_cover(getting);
	name_remedies(getting);
	return status;
}

static enum state state_of(const struct getting *getting, size_t i)
{
	const struct ctl_wanted *wanted = &getting->wanted[i];

	switch (wanted->error) {
	case 0:
		if (wanted->handle)
			return FETCHED;
		return wanted->request.kind == BID_KIND_ELF && getting->builds[i]->state == CTL_BUILD_ADDED ? ADDED : HERE;
	case -ENOENT:
		return ABSENT;
	case -EBADMSG:
	case -EFBIG:
	case -EOPNOTSUPP:
	case -EACCES:
		return REFUSED;
	case -EINTR:
		return INTERRUPTED;
	default:
		return FAILED;
	}
}

static const char *why(const struct getting *getting, const struct ctl_wanted *wanted)
{
	if (wanted->error == 0 || wanted->why)
		return wanted->why;
	if (wanted->error == -EROFS)
		return "nobody was asked";
	if (wanted->error != -ENOENT)
		return bid_strerror(wanted->error);
	return wanted->remembered_s ? "the servers said no a while ago; '--refresh' asks again"
				    : ctl_sources_why_none(getting->ctl, getting->store, wanted->request.kind);
}

static void print_row(const struct getting *getting, const struct bid_id *id, enum bid_kind kind, const struct ctl_build *build,
		      const char *state, const char *file, uint64_t received, const char *reason)
{
	ctl_row(getting->ctl, CTL_ID("id", 40, id), CTL_KIND("kind", 9, kind), CTL_TEXT("state", 11, state),
		CTL_TEXT("file", 0, file), CTL_TEXT("path", 0, build->path), CTL_TEXT("reason", 0, reason),
		CTL_NUMBER("samples", CTL_HIDDEN, build->samples), CTL_SIZE("received", CTL_HIDDEN, received));
}

static void print_rows(const struct getting *getting)
{
	const struct ctl *ctl = getting->ctl;

	for (size_t i = 0; i < getting->n; i++) {
		const struct ctl_wanted *wanted = &getting->wanted[i];
		bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
		enum state state = state_of(getting, i);
		char path[PATH_MAX];
		bool found = false;

		if (wanted->error == 0 && bid_store_find(getting->store, &wanted->request, &file) == 0)
			found = ctl_file_path(&file, path, sizeof(path)) == 0;
		print_row(getting, &wanted->request.id, wanted->request.kind, getting->builds[i], state_names[state],
			  found ? path : NULL, wanted->bytes, why(getting, wanted));
	}
	for (size_t i = 0; i < getting->needs.n && ctl->json; i++) {
		const struct ctl_build *build = &getting->needs.builds[i];

		if (ctl_build_is_needed_without_id(&getting->needs, build))
			print_row(getting, &build->id, BID_KIND_NONE, build, "unidentified", NULL, 0, build->why);
	}
}

static void print_totals(const struct getting *getting)
{
	struct ctl_field fields[STATES + 4] = { CTL_NUMBER("needed", 0, getting->n) };

	for (int state = 0; state < STATES; state++)
		fields[1 + state] = (struct ctl_field)CTL_NUMBER(state_names[state], 0, getting->counts[state]);
	fields[1 + STATES] = (struct ctl_field)CTL_NUMBER("unidentified", 0, getting->unidentified);
	fields[2 + STATES] = (struct ctl_field)CTL_SIZE("received", getting->bytes ? 0 : CTL_HIDDEN, getting->bytes);
	ctl_totals_of(getting->ctl, fields);
}

static enum ctl_status report(struct getting *getting)
{
	for (size_t i = 0; i < getting->n; i++) {
		getting->counts[state_of(getting, i)]++;
		getting->bytes += getting->wanted[i].bytes;
	}
	for (size_t i = 0; i < getting->needs.n; i++)
		getting->unidentified += ctl_build_is_needed_without_id(&getting->needs, &getting->needs.builds[i]);
	print_rows(getting);
	print_totals(getting);
	if (getting->counts[FAILED] > 0)
		return CTL_TROUBLE;
	return getting->counts[ABSENT] > 0 || getting->counts[REFUSED] > 0 || getting->unidentified > 0 || getting->needs.partial
		       ? CTL_REFUSED
		       : CTL_DONE;
}

enum ctl_status ctl_get_many(const struct ctl *ctl, struct bid_store *store, enum ctl_needs_from from, enum bid_kind kind)
{
	bid_cleanup(getting_release) struct getting getting = { .ctl = ctl, .store = store };
	bool adding = kind != BID_KIND_DEBUGINFO && bid_store_writable(store);
	enum ctl_status status = ctl_needs_read(ctl, from, adding ? store : NULL, &getting.needs), said;
	/* the good lines of a list count even if others were bad */
	enum ctl_status lines = from == CTL_NEEDS_LIST && status == CTL_USAGE ? CTL_USAGE : CTL_DONE;

	if (lines == CTL_USAGE)
		status = CTL_DONE;
	if (status == CTL_DONE && adding)
		status = add_local(&getting);
	if (status != CTL_DONE)
		return status;
	if (make_list(&getting, kind) < 0)
		return ctl_no_memory();
	if (getting.n > 0)
		status = fetch(&getting);
	if (status == CTL_TROUBLE || status == CTL_USAGE)
		return status;
	said = report(&getting);
	if (said < lines)
		said = lines;
	return status == CTL_DONE ? said : status;
}
