// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl add --perf-data: add the recorded files from their paths, if they are still the same builds. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/local_error.h"
#include "base/log.h"
#include "ctl/add.h"
#include "ctl/perf_data.h"
#include "ctl/running_kernel.h"

struct recording_add {
	const struct ctl *ctl;
	struct bid_store *store;
	struct bid_id kernel, vdso; /* ids of this machine; len 0 if unknown */
	struct ctl_perf_data recording;
	struct ctl_debug_files debug_files;
};

static void adding_release(struct recording_add *adding)
{
	ctl_debug_files_release(&adding->debug_files);
	ctl_perf_data_release(&adding->recording);
	bid_store_free(adding->store);
}

/* Does the store have the build with @kind? Returns 1, 0, or a negative errno of the store. */
static int has_kind(struct recording_add *adding, const struct ctl_build *build, enum bid_kind kind)
{
	struct bid_artifact artifact = { .id = build->id, .kind = kind };
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_find(adding->store, &artifact, BID_MAY_DERIVE, &file);

	if (r == 0)
		r = bid_store_sync_file(adding->store, &file);
	bid_file_release(&file);
	return r == 0 ? 1 : bid_is_local_error(r) ? r : 0;
}

static int is_stored(struct recording_add *adding, const struct ctl_build *build)
{
	int r = has_kind(adding, build, BID_KIND_ELF);

	if (r == 0 && ctl_build_is_kernel(build))
		r = has_kind(adding, build, BID_KIND_KALLSYMS);
	if (r == 0 && ctl_build_is_vdso(build))
		r = has_kind(adding, build, BID_KIND_VDSO);
	return r;
}

static bool is_running(const struct recording_add *adding, const struct ctl_build *build)
{
	if (build->mode == BID_PERFDATA_GUEST)
		return false;
	return (ctl_build_is_kernel(build) && bid_id_answers(&adding->kernel, &build->id)) ||
	       (ctl_build_is_vdso(build) && bid_id_answers(&adding->vdso, &build->id));
}

/* Add the symbol table or the vDSO of this machine, as perf record does for the kernel that it records. */
static int add_running(struct recording_add *adding, struct ctl_build *build)
{
	bid_cleanup(ctl_running_data_release) struct ctl_running_data here = { 0 };
	bool kernel = ctl_build_is_kernel(build);
	struct bid_added added;
	int r = kernel ? ctl_running_kallsyms(&here) : ctl_running_vdso(&here);

	if (r < 0) {
		build->state = CTL_BUILD_RUNNING;
		build->why = strdup(kernel ? ctl_running_why(r) : strerror(-r));
		return build->why ? 0 : -ENOMEM;
	}
	r = bid_store_add_data(adding->store, &here.artifact, here.mode, here.data, here.len, &added);
	if (r == 0)
		build->state = CTL_BUILD_ADDED;
	return r;
}

/* A recorded module, and a candidate for its file. */
struct recorded_module {
	struct recording_add *adding;
	struct ctl_build *build;
};

static int try_module(void *user, const char *path)
{
	const struct recorded_module *module = user;
	struct ctl_build file = *module->build;
	bid_auto_free char *copy = strdup(path);
	int r;

	file.path = copy;
	file.why = NULL;
	r = copy ? ctl_add_build(module->adding->ctl, module->adding->store, &file, &module->adding->debug_files) : -ENOMEM;
	free(file.why);
	if (r == 0 && (file.state == CTL_BUILD_ADDED || file.state == CTL_BUILD_KNOWN)) {
		module->build->state = file.state;
		return 1;
	}
	return r;
}

/*
 * Find a module by its name: perf records "[ext4]" if it does not find the file, or does not know its compression. The file may
 * belong to any installed release.
 */
static int add_module(struct recording_add *adding, struct ctl_build *build)
{
	struct recorded_module module = { .adding = adding, .build = build };
	size_t len = strlen(build->path);
	char name[NAME_MAX + 1];
	int r;

	if (build->mode != BID_PERFDATA_KERNEL || build->path[0] != '[' || ctl_build_is_kernel(build) || len < 3 ||
	    len - 2 >= sizeof(name))
		return 0;
	memcpy(name, build->path + 1, len - 2);
	name[len - 2] = '\0';
	r = ctl_module_each(name, try_module, &module);
	return r < 0 ? r : 0;
}

/* Determine the state of one build. Returns 0, or a negative errno of the store. */
static int add_recorded_build(struct recording_add *adding, struct ctl_build *build)
{
	int r = 0;

	build->state = build->id.len ? CTL_BUILD_MISSING : CTL_BUILD_UNIDENTIFIED;
	/* a guest's path is a path of another machine */
	if (build->id.len == 0)
		return build->path[0] == '/' && build->mode == BID_PERFDATA_USER
			       ? ctl_guess_build(adding->ctl, adding->store, build, adding->recording.summary.modified)
			       : 0;
	if (build->path[0] == '/' && build->mode != BID_PERFDATA_GUEST)
		r = ctl_add_build(adding->ctl, adding->store, build, &adding->debug_files);
	else
		r = add_module(adding, build);
	if (r < 0 || build->state == CTL_BUILD_ADDED || build->state == CTL_BUILD_KNOWN)
		return r;
	r = is_stored(adding, build);
	if (r > 0)
		build->state = CTL_BUILD_KNOWN;
	if (r != 0 || !is_running(adding, build))
		return r < 0 ? r : 0;
	return add_running(adding, build);
}

static const char *state_name(enum ctl_build_state state)
{
	static const char *const names[CTL_BUILD_STATES] = {
		[CTL_BUILD_ADDED] = "added",
		[CTL_BUILD_KNOWN] = "known",
		[CTL_BUILD_RUNNING] = "running",
		[CTL_BUILD_REPLACED] = "replaced",
		[CTL_BUILD_MISSING] = "missing",
		[CTL_BUILD_REFUSED] = "refused",
		[CTL_BUILD_UNIDENTIFIED] = "unidentified",
		[CTL_BUILD_GUESSED] = "guessed",
	};

	return names[state];
}

/* Describe the result for @build, except its path. Returns @text. */
static const char *describe_build(const struct ctl_perf_data *recording, const struct ctl_build *build, char *text, size_t size)
{
	char hex[BID_ID_HEX_MAX], date[CTL_TIME_MAX];
	time_t recorded = recording->summary.modified;

	snprintf(text, size, "%s", build->why ? build->why : "");
	if (!build->looked)
		return text;
	snprintf(text, size, "%s%s is there, last changed %s%s%s%s", build->found.len ? "build " : "a file without a build-id",
		 build->found.len ? bid_id_format(&build->found, hex) : "", ctl_format_time(build->mtime, date),
		 recorded == 0		   ? ""
		 : build->mtime > recorded ? ", after the recording"
					   : ", before the recording",
		 build->why ? "; " : "", build->why ? build->why : "");
	return text;
}

/*
 * Does the table show @build? A recording with a list of sampled builds also has mappings of all other files. A build outside that
 * list almost certainly has no samples, and is not needed.
 */
static bool is_shown(const struct ctl *ctl, const struct ctl_perf_data *recording, const struct ctl_build *build)
{
	return build->state != CTL_BUILD_UNIDENTIFIED || !recording->summary.lists_sampled || ctl->verbose ||
	       ctl_build_is_changed(recording, build);
}

static void print_builds(const struct ctl *ctl, const struct ctl_perf_data *recording)
{
	for (size_t i = 0; i < recording->n; i++) {
		const struct ctl_build *build = &recording->builds[i];
		char text[512];

		if (ctl->json || is_shown(ctl, recording, build))
			ctl_row(ctl, CTL_ID("id", 40, &build->id), CTL_TEXT("state", 12, state_name(build->state)),
				CTL_TEXT("path", 0, build->path),
				CTL_TEXT("reason", 0, describe_build(recording, build, text, sizeof(text))),
				CTL_TEXT("mode", CTL_HIDDEN, bid_perfdata_mode_name(build->mode)),
				CTL_ID("found_id", CTL_HIDDEN, build->looked ? &build->found : NULL),
				CTL_TIME("mtime", CTL_HIDDEN, build->looked ? build->mtime : 0));
	}
}

static void print_totals(const struct ctl *ctl, const struct ctl_perf_data *recording)
{
	const struct bid_perfdata_summary *summary = &recording->summary;
	struct ctl_field fields[CTL_BUILD_STATES + 8] = {
		CTL_NUMBER("named", 0, recording->n),
		CTL_TEXT("file", CTL_HIDDEN, recording->path),
		CTL_TIME("time", CTL_HIDDEN, summary->modified),
		CTL_BOOL("lists_sampled", summary->lists_sampled),
		CTL_BOOL("unfinished", summary->interrupted),
		CTL_BOOL("truncated", summary->cut),
		CTL_NUMBER("damaged", CTL_HIDDEN, summary->damaged),
	};

	for (int state = 0; state < CTL_BUILD_STATES; state++)
		fields[7 + state] = (struct ctl_field)CTL_NUMBER(state_name(state), 0, 0);
	for (size_t i = 0; i < recording->n; i++)
		fields[7 + recording->builds[i].state].number++;
	ctl_totals_of(ctl, fields);
}

/* Compute the exit status of a run without errors. */
static enum ctl_status status_of(const struct recording_add *adding)
{
	const struct bid_perfdata_summary *summary = &adding->recording.summary;
	bool lacks = summary->cut || summary->damaged > 0;

	for (size_t i = 0; i < adding->recording.n; i++) {
		const struct ctl_build *build = &adding->recording.builds[i];

		lacks |= ctl_build_lacks(build->state) || ctl_build_is_changed(&adding->recording, build);
		lacks |= (build->state == CTL_BUILD_UNIDENTIFIED || build->state == CTL_BUILD_GUESSED) && build->path[0] == '/' &&
			 !summary->lists_sampled;
	}
	return lacks ? CTL_REFUSED : CTL_DONE;
}

enum ctl_status ctl_add_perf_data(const struct ctl *ctl)
{
	bid_cleanup(adding_release) struct recording_add adding = {
		.ctl = ctl,
		.recording = { .path = ctl->perf_data },
	};
	/* with samples, to know which builds without an id are needed */
	enum ctl_status status = ctl_perf_data_read(&adding.recording, true);
	int r = 0;

	if (status == CTL_DONE)
		status = ctl_open_store(ctl, CTL_WRITE, &adding.store);
	if (status != CTL_DONE)
		return status;
	/* without these ids no build counts as running */
	(void)ctl_running_kernel(&adding.kernel);
	(void)ctl_running_vdso_id(&adding.vdso);

	for (size_t i = 0; i < adding.recording.n; i++) {
		r = add_recorded_build(&adding, &adding.recording.builds[i]);

		if (r < 0) {
			bid_error_about(adding.recording.builds[i].path, r, "%s: cannot add it to '%s'", bid_strerror(r),
					bid_store_path(adding.store));
			return CTL_TROUBLE;
		}
	}
	r = ctl_debug_files_add_quietly(&adding.debug_files, ctl, adding.store);
	if (r < 0)
		return ctl_trouble(bid_store_path(adding.store), r, "add debug files to the store");
	ctl_perf_data_warn(&adding.recording);
	print_builds(ctl, &adding.recording);
	print_totals(ctl, &adding.recording);
	return status_of(&adding);
}
