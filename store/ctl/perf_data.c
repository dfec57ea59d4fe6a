// SPDX-License-Identifier: LGPL-2.1-or-later
/* Output of a recording's builds. */
#include "ctl/perf_data.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "ctl/output.h"

static const char *state_name(enum ctl_build_state state)
{
	static const char *const names[CTL_BUILD_STATES] = {
		[CTL_BUILD_ADDED] = "added",	   [CTL_BUILD_KNOWN] = "known",
		[CTL_BUILD_FETCHED] = "fetched",   [CTL_BUILD_RUNNING] = "running",
		[CTL_BUILD_REPLACED] = "replaced", [CTL_BUILD_MISSING] = "missing",
		[CTL_BUILD_REFUSED] = "refused",   [CTL_BUILD_UNIDENTIFIED] = "unidentified",
		[CTL_BUILD_GUESSED] = "guessed",
	};

	return names[state];
}

bool ctl_build_lacks(enum ctl_build_state state)
{
	return state == CTL_BUILD_REPLACED || state == CTL_BUILD_MISSING || state == CTL_BUILD_REFUSED;
}

/* Describe the result for @build, except its path. Returns @text. */
static const char *describe(const struct ctl_recording *recording, const struct ctl_build *build, char *text, size_t size)
{
	char hex[BID_ID_HEX_MAX], date[32] = "";
	time_t recorded = recording->summary.modified;
	struct tm local;

	snprintf(text, size, "%s", build->why ? build->why : "");
	if (!build->looked)
		return text;
	if (localtime_r(&build->mtime, &local))
		strftime(date, sizeof(date), "%F %T", &local);
	snprintf(text, size, "%s%s is there, last changed %s%s%s%s", build->found.len ? "build " : "a file without a build-id",
		 build->found.len ? bid_id_format(&build->found, hex) : "", date,
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
static bool is_shown(const struct ctl *ctl, const struct ctl_recording *recording, const struct ctl_build *build)
{
	return build->state != CTL_BUILD_UNIDENTIFIED || !recording->summary.lists_sampled || ctl->verbose ||
	       ctl_build_is_changed(recording, build);
}

static void print_table(const struct ctl *ctl, const struct ctl_recording *recording)
{
	bool terminal = ctl_is_terminal(stdout);

	if (terminal)
		printf("%s%-40s  %-12s  %s%s\n", ctl_colour(stdout, CTL_BOLD), "BUILD-ID", "STATE", "PATH",
		       ctl_colour(stdout, CTL_PLAIN));
	for (size_t i = 0; i < recording->n; i++) {
		const struct ctl_build *build = &recording->builds[i];
		char hex[BID_ID_HEX_MAX], text[512];

		if (!is_shown(ctl, recording, build))
			continue;
		printf(terminal ? "%-40s  %-12s  " : "%s\t%s\t", build->id.len ? bid_id_format(&build->id, hex) : "-",
		       state_name(build->state));
		ctl_print_text(stdout, build->path);
		describe(recording, build, text, sizeof(text));
		if (!terminal)
			fputs("\t", stdout);
		else if (text[0])
			fputs("  ", stdout);
		fputs(ctl_colour(stdout, CTL_DIM), stdout);
		ctl_print_text(stdout, text[0] || terminal ? text : "-");
		puts(ctl_colour(stdout, CTL_PLAIN));
	}
}

static void count(const struct ctl_recording *recording, size_t counts[static CTL_BUILD_STATES])
{
	memset(counts, 0, CTL_BUILD_STATES * sizeof(counts[0]));
	for (size_t i = 0; i < recording->n; i++)
		counts[recording->builds[i].state]++;
}

static json_t *build_to_json(const struct ctl_build *build)
{
	json_t *json = json_pack("{s:o, s:o, s:s, s:s, s:o}", "id", ctl_json_id(&build->id), "path", ctl_json_text(build->path),
				 "mode", bid_perfdata_mode_name(build->mode), "state", state_name(build->state), "reason",
				 ctl_json_text(build->why));

	if (build->looked) {
		json_object_set_new(json, "found_id", ctl_json_id(&build->found));
		json_object_set_new(json, "mtime", json_integer((json_int_t)build->mtime));
	}
	return json;
}

static void print_json(const struct ctl *ctl, const struct ctl_recording *recording)
{
	const struct bid_perfdata_summary *summary = &recording->summary;
	size_t counts[CTL_BUILD_STATES];
	json_t *totals;

	for (size_t i = 0; i < recording->n; i++)
		ctl_row(ctl, build_to_json(&recording->builds[i]));
	totals = json_pack("{s:o, s:o, s:b, s:b, s:b, s:I, s:I}", "file", ctl_json_text(recording->path), "time",
			   summary->modified ? json_integer((json_int_t)summary->modified) : json_null(), "lists_sampled",
			   summary->lists_sampled, "unfinished", summary->interrupted, "truncated", summary->cut, "damaged",
			   (json_int_t)summary->damaged, "named", (json_int_t)recording->n);
	count(recording, counts);
	for (int state = 0; state < CTL_BUILD_STATES; state++)
		json_object_set_new(totals, state_name(state), json_integer((json_int_t)counts[state]));
	ctl_totals(ctl, totals);
}

static void print_summary(const struct ctl *ctl, const struct ctl_recording *recording)
{
	size_t counts[CTL_BUILD_STATES];

	count(recording, counts);
	ctl_summary(ctl, "named %zu", recording->n);
	for (int state = 0; state < CTL_BUILD_STATES; state++)
		ctl_summary(ctl, ", %s %zu", state_name(state), counts[state]);
	ctl_summary(ctl, "\n");
}

bool ctl_build_is_needed_without_id(const struct ctl_recording *recording, const struct ctl_build *build)
{
	return build->state == CTL_BUILD_UNIDENTIFIED && build->path[0] == '/' && !recording->summary.lists_sampled;
}

bool ctl_build_is_changed(const struct ctl_recording *recording, const struct ctl_build *build)
{
	return build->state == CTL_BUILD_UNIDENTIFIED && build->looked && (build->samples > 0 || !recording->summary.lists_sampled);
}

void ctl_recording_warn(struct ctl_recording *recording)
{
	const struct bid_perfdata_summary *summary = &recording->summary;
	size_t unnamed = 0, guessed = 0;

	for (size_t i = 0; i < recording->n; i++)
		unnamed += ctl_build_is_needed_without_id(recording, &recording->builds[i]);
	if (summary->cut)
		bid_warning("cut off, so that not all is known: '%s'", recording->path);
	if (summary->interrupted)
		bid_warning("not ended properly, so that it does not list what was sampled: '%s'", recording->path);
	if (summary->damaged)
		bid_warning("damaged in %" PRIu64 " places, at %" PRIu64 " first, by %s: '%s'", summary->damaged,
			    summary->damage_offset, summary->damage, recording->path);
	for (size_t i = 0; i < recording->n; i++)
		guessed += recording->builds[i].state == CTL_BUILD_GUESSED;
	if (guessed > 0)
		bid_warning("%zu files without a build-id are kept as they are now, which is a guess: '%s'", guessed,
			    recording->path);
	for (size_t i = 0; i < recording->n; i++)
		if (ctl_build_is_changed(recording, &recording->builds[i]))
			bid_warning("'%s': no build-id recorded, and another file is there now - record with 'perf "
				    "record --buildid-mmap'",
				    recording->builds[i].path);
	if (unnamed > 0)
		bid_warning(
			"no build-id for %zu paths, so that a file there may be another build than what ran: '%s' - record with "
			"'perf record --buildid-mmap'",
			unnamed, recording->path);
	recording->partial = summary->cut || summary->damaged || unnamed > 0;
}

void ctl_recording_print(const struct ctl *ctl, struct ctl_recording *recording)
{
	ctl_recording_warn(recording);
	if (ctl->json) {
		print_json(ctl, recording);
		return;
	}
	print_table(ctl, recording);
	print_summary(ctl, recording);
}
