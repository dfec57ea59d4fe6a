// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl archive */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/archive.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/add.h"
#include "ctl/fetch_all.h"
#include "ctl/needed_builds.h"
#include "ctl/outfile.h"
#include "ctl/output.h"
#include "ctl/perf_data.h"

struct packing {
	const struct ctl *ctl;
	struct bid_store *store; /* owned; NULL is an empty one */
	struct ctl_perf_data recording; /* named builds; none without --perf-data and --core */
	struct bid_archive_build *builds; /* owned */
	size_t n;
	size_t n_named; /* builds behind these are dwz files */
	struct ctl_progress progress;
	struct ctl_outfile file;
};

static void packing_release(struct packing *packing)
{
	ctl_outfile_release(&packing->file);
	free(packing->builds);
	ctl_perf_data_release(&packing->recording);
	bid_store_free(packing->store);
}

/* Add the recorded builds, with the ids that perf will look for. */
static void add_recorded(struct packing *packing)
{
	for (size_t i = 0; i < packing->recording.n; i++) {
		const struct ctl_build *build = &packing->recording.builds[i];
		bool is_named = build->path[0] == '[' ||
				(build->mode != BID_PERFDATA_GUEST && !ctl_ends_with(build->path, " (deleted)"));

		if (build->id.len)
			packing->builds[packing->n++] = (struct bid_archive_build){ .id = build->id,
										    .path = is_named ? build->path : NULL };
	}
}

static enum ctl_status collect_ids(struct packing *packing, int argc, char **argv)
{
	packing->builds = calloc(packing->recording.n + (size_t)argc + 1, sizeof(*packing->builds));
	if (!packing->builds)
		return ctl_no_memory();
	add_recorded(packing);
	for (int i = 0; i < argc; i++) {
		enum ctl_status status = ctl_which_build(packing->store, argv[i], &packing->builds[packing->n].id, NULL);

		if (status != CTL_DONE)
			return status;
		packing->n++;
	}
	packing->n_named = packing->n;
	if (packing->n > 0)
		return CTL_DONE;
	bid_error_about(packing->ctl->perf_data, -ENODATA, "no build-id in it, so there is nothing to pack");
	return CTL_REFUSED;
}

/* Append the shared files of dwz(1) of the builds' debug information; they have no ELF file. */
static enum ctl_status complete_ids(struct packing *packing)
{
	bid_cleanup(ctl_wanted_release) struct ctl_wanted_list list = { 0 };
	struct bid_archive_build *builds;
	size_t first;

	for (size_t i = 0; i < packing->n; i++)
		if (ctl_want_once(&list, &packing->builds[i].id, BID_KIND_DEBUGINFO, NULL) < 0)
			return ctl_no_memory();
	first = list.n;
	if (ctl_want_dwz(&list, packing->store) < 0)
		return ctl_no_memory();
	builds = reallocarray(packing->builds, packing->n + list.n - first + 1, sizeof(*builds));
	if (!builds)
		return ctl_no_memory();
	packing->builds = builds;
	for (size_t i = first; i < list.n; i++)
		builds[packing->n++] = (struct bid_archive_build){ .id = list.wanted[i].artifact.id };
	return CTL_DONE;
}

static int draw_progress(void *user, uint64_t done, uint64_t total)
{
	struct packing *packing = user;

	ctl_progress_text(&packing->progress, "packing: %" PRIu64 " of %" PRIu64 " builds", done, total);
	return 0;
}

static const char *why_not(const struct bid_archive_build *build)
{
	return build->error == -ENOENT ? "not in the store" : bid_strerror(build->error);
}

/* Does the packed build lack an artifact that may exist? */
static bool is_partial(const struct bid_archive_build *build)
{
	return build->error == 0 && build->left_out != BID_KIND_NONE;
}

static void print_build(const struct ctl *ctl, const struct bid_archive_build *build, const char *path)
{
	const char *why = build->error ? why_not(build) : is_partial(build) ? bid_strerror(build->why) : NULL;

	ctl_row(ctl, CTL_ID("id", 40, &build->id), CTL_KINDS("kinds", 14, build->error ? 0 : build->kinds),
		CTL_SIZE("size", -9, build->size), CTL_TEXT("path", 0, path),
		CTL_TEXT("state", CTL_HIDDEN,
			 build->error	     ? "missing"
			 : is_partial(build) ? "partial"
					     : "packed"),
		CTL_KIND("left_out", CTL_HIDDEN, is_partial(build) ? build->left_out : BID_KIND_NONE),
		CTL_TEXT("reason", CTL_HIDDEN, why));
}

/* Is the build a vDSO that is absent? A vDSO is no file: only its kernel has it, and most versions of perf keep none. */
static bool is_absent_vdso(const struct bid_archive_build *build)
{
	return build->error == -ENOENT && build->path && strncmp(build->path, "[vdso", strlen("[vdso")) == 0;
}

static void print_failure(const struct bid_archive_build *build, bool dwz)
{
	char hex[BID_ID_HEX_MAX];

	bid_id_format(&build->id, hex);
	if (is_absent_vdso(build))
		bid_warning("%s: '%s' of '%s'", why_not(build), hex, build->path);
	else if (dwz)
		bid_error_about(hex, build->error, "%s: '%s', a dwz file that debug information refers to", why_not(build), hex);
	else if (build->path)
		bid_error_about(hex, build->error, "%s: '%s' of '%s'", why_not(build), hex, build->path);
	else
		bid_error_about(hex, build->error, "%s", why_not(build));
}

/* Return the original path of a build: the recorded one, else the store's, in @path; or NULL. */
static const char *path_of(const struct packing *packing, const struct bid_archive_build *build, char path[static PATH_MAX + 1])
{
	if (build->path)
		return build->path;
	return ctl_original_path(packing->store, &build->id, path) ? path : NULL;
}

/* Report the packed builds, and one error for each failure. */
static enum ctl_status report_packed(const struct packing *packing, size_t packed, uint64_t size)
{
	const struct ctl *ctl = packing->ctl;
	char hex[BID_ID_HEX_MAX], buf[PATH_MAX + 1];
	bool is_stdout = strcmp(ctl->output, "-") == 0, lacks = packed == 0;

	for (size_t i = 0; i < packing->n; i++) {
		const struct bid_archive_build *build = &packing->builds[i];
		const char *path = path_of(packing, build, buf);

		if (build->error < 0)
			print_failure(build, i >= packing->n_named);
		if (is_partial(build))
			bid_error_about(bid_id_format(&build->id, hex), build->why, "%s: %s of '%s' is left out",
					bid_strerror(build->why), bid_kind_name(build->left_out), hex);
		lacks |= is_partial(build) || (build->error < 0 && !is_absent_vdso(build));
		if (ctl->json || (ctl->verbose && !is_stdout && build->error == 0))
			print_build(ctl, build, path);
	}
	ctl_totals(ctl, CTL_TEXT("file", CTL_HIDDEN, ctl->output), CTL_NUMBER("packed", 0, packed),
		   CTL_NUMBER("missing", 0, packing->n - packed), CTL_SIZE("size", 0, size));
	return lacks ? CTL_REFUSED : CTL_DONE;
}

static enum ctl_status pack_ids(struct packing *packing, int how)
{
	const char *path = packing->ctl->output;
	size_t packed = 0;
	uint64_t size = 0;
	int r = ctl_outfile_open(&packing->file, path);

	if (r < 0) {
		bid_error_about(path, r, "%s", r == -ENOENT ? "no such directory to write it into" : strerror(-r));
		return CTL_TROUBLE;
	}
	if (packing->store)
		r = bid_archive_pack(packing->store, packing->builds, packing->n, how, packing->file.fd, draw_progress, packing);
	ctl_progress_clear(&packing->progress);
	for (size_t i = 0; r == 0 && i < packing->n; i++) {
		if (!packing->store)
			packing->builds[i].error = -ENOENT;
		packed += packing->builds[i].error == 0;
		size += packing->builds[i].size;
	}
	/* an empty archive is useless, and must not replace an older one */
	if (r == 0 && packed > 0)
		r = ctl_outfile_commit(&packing->file);
	if (r < 0) {
		bid_error_about(path, r, "%s", r == -ENOTSUP ? "this libarchive cannot compress in this format" : bid_strerror(r));
		return CTL_TROUBLE;
	}
	return report_packed(packing, packed, size);
}

enum ctl_status ctl_archive(const struct ctl *ctl, int argc, char **argv)
{
	bid_cleanup(packing_release) struct packing packing = {
		.ctl = ctl,
		.recording = { .path = ctl->perf_data },
		.file = CTL_OUTFILE_NONE,
	};
	enum ctl_status status = CTL_DONE;
	int how;

	if (!ctl->output)
		return ctl_usage("archive", "'archive' needs '--output'");
	if (argc == 0 && !ctl->perf_data && !ctl->core)
		return ctl_usage("archive", "'archive' needs ID..., '--perf-data' or '--core'");
	if (ctl->perf_data && ctl->core)
		return ctl_usage("--core", "'--core' and '--perf-data' do not go together");
	if (strcmp(ctl->output, "-") == 0 && (ctl->json || ctl_is_terminal(stdout)))
		return ctl_usage("-", ctl->json ? "'--json' and '--output=-' do not go together"
						: "bidctl writes no archive to a terminal");
	how = bid_packing_parse(strcmp(ctl->output, "-") == 0 ? "stdout.tar.zst" : ctl->output);
	if (how < 0)
		return ctl_usage(ctl->output, "not a name that ends in .tar.zst, .tar.gz, .tar.xz, .tar.bz2 or .tar");
	if (ctl->perf_data)
		status = ctl_perf_data_read(&packing.recording, false);
	else if (ctl->core)
		status = ctl_needs_read(ctl, NULL, &packing.recording);
	if (status == CTL_DONE)
		status = ctl_open_to_find(ctl, CTL_READ, &packing.store);
	if (status == CTL_DONE)
		status = collect_ids(&packing, argc, argv);
	if (status == CTL_DONE)
		status = complete_ids(&packing);
	return status == CTL_DONE ? pack_ids(&packing, how) : status;
}
