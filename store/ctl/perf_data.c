// SPDX-License-Identifier: LGPL-2.1-or-later
/* Builds named by a recording of perf. */
#include "ctl/perf_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"

void ctl_perf_data_release(struct ctl_perf_data *recording)
{
	for (size_t i = 0; i < recording->n; i++) {
		free(recording->builds[i].path);
		free(recording->builds[i].why);
	}
	free(recording->builds);
	recording->builds = NULL;
	recording->n = recording->room = 0;
}

int ctl_perf_data_add(struct ctl_perf_data *recording, const struct bid_perfdata_dso *dso)
{
	struct ctl_build *build;

	if (bid_array_grow(recording->builds, recording->n, recording->room) < 0)
		return -ENOMEM;
	build = &recording->builds[recording->n];
	*build = (struct ctl_build){
		.id = dso->id,
		.sized = dso->sized,
		.mode = dso->mode,
		.samples = dso->samples,
		.mapped = dso->mapped,
		.path = strdup(dso->path),
		.state = dso->id.len ? CTL_BUILD_MISSING : CTL_BUILD_UNIDENTIFIED,
	};
	if (!build->path)
		return -ENOMEM;
	recording->n++;
	return 0;
}

/* bid_perfdata_fn */
static int collect_dso(void *user, const struct bid_perfdata_dso *dso)
{
	return ctl_perf_data_add(user, dso);
}

enum ctl_status ctl_perf_data_read(struct ctl_perf_data *recording, bool hottest_first)
{
	int r = bid_perfdata_read(recording->path, hottest_first ? BID_PERFDATA_SAMPLES : 0, collect_dso, recording,
				  &recording->summary);

	if (r == 0)
		return CTL_DONE;
	bid_error_about(recording->path, r, "%s",
			r == -EINVAL   ? "not a recording of perf"
			: r == -ENOENT ? "no such file"
			: r == -E2BIG  ? "it names more files than any recording does"
				       : strerror(-r));
	return r == -EINVAL || r == -ENOENT || r == -EACCES ? CTL_REFUSED : CTL_TROUBLE;
}

bool ctl_build_is_kernel(const struct ctl_build *build)
{
	return strncmp(build->path, "[kernel.", strlen("[kernel.")) == 0;
}

bool ctl_build_is_vdso(const struct ctl_build *build)
{
	return strncmp(build->path, "[vdso", strlen("[vdso")) == 0;
}

struct bid_id ctl_build_id(const struct ctl_build *build)
{
	struct bid_id id = build->id;

	if (build->sized)
		return id;
	while (id.len > CTL_ID_UNIQUE && id.bytes[id.len - 1] == 0)
		id.len--;
	id.len = (uint8_t)((id.len + 3) & ~3);
	/* up to three zeros at the end may belong to the id */
	return build->id.len - id.len >= 4 ? id : build->id;
}

bool ctl_build_lacks(enum ctl_build_state state)
{
	return state == CTL_BUILD_REPLACED || state == CTL_BUILD_MISSING || state == CTL_BUILD_REFUSED;
}

bool ctl_build_is_needed_without_id(const struct ctl_perf_data *recording, const struct ctl_build *build)
{
	return build->state == CTL_BUILD_UNIDENTIFIED && build->path[0] == '/' && !recording->summary.lists_sampled;
}

bool ctl_build_is_changed(const struct ctl_perf_data *recording, const struct ctl_build *build)
{
	return build->state == CTL_BUILD_UNIDENTIFIED && build->looked && (build->samples > 0 || !recording->summary.lists_sampled);
}

void ctl_perf_data_warn(struct ctl_perf_data *recording)
{
	const struct bid_perfdata_summary *summary = &recording->summary;
	size_t without_id = 0, guessed = 0;

	for (size_t i = 0; i < recording->n; i++)
		without_id += ctl_build_is_needed_without_id(recording, &recording->builds[i]);
	if (summary->cut)
		bid_warning("cut off, so some builds are unknown: '%s'", recording->path);
	if (summary->interrupted)
		bid_warning("interrupted before perf wrote the list of sampled builds: '%s'", recording->path);
	if (summary->damaged)
		bid_warning("damaged in %" PRIu64 " places, at %" PRIu64 " first, by %s: '%s'", summary->damaged,
			    summary->damage_offset, summary->damage, recording->path);
	for (size_t i = 0; i < recording->n; i++)
		guessed += recording->builds[i].state == CTL_BUILD_GUESSED;
	if (guessed > 0)
		bid_warning("bidctl keeps %zu files without a build-id as they are now, which is a guess: '%s'", guessed,
			    recording->path);
	for (size_t i = 0; i < recording->n; i++)
		if (ctl_build_is_changed(recording, &recording->builds[i]))
			bid_warning("'%s': no build-id recorded, and another file is there now - record with 'perf "
				    "record --buildid-mmap'",
				    recording->builds[i].path);
	if (without_id > 0)
		bid_warning("no build-id for %zu paths, and a file there may be of another build: '%s' - record with 'perf record "
			    "--buildid-mmap'",
			    without_id, recording->path);
	recording->partial = summary->cut || summary->damaged || without_id > 0;
}
