// SPDX-License-Identifier: LGPL-2.1-or-later
/* Builds named by a recording of perf. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "ctl/perf_data.h"

void ctl_recording_release(struct ctl_recording *recording)
{
	for (size_t i = 0; i < recording->n; i++) {
		free(recording->builds[i].path);
		free(recording->builds[i].why);
	}
	free(recording->builds);
	recording->builds = NULL;
	recording->n = recording->room = 0;
}

int ctl_recording_add(struct ctl_recording *recording, const struct bid_perfdata_dso *dso)
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
static int collect(void *user, const struct bid_perfdata_dso *dso)
{
	return ctl_recording_add(user, dso);
}

enum ctl_status ctl_recording_read(struct ctl_recording *recording, bool hottest_first)
{
	int r = bid_perfdata_read(recording->path, hottest_first ? BID_PERFDATA_SAMPLES : 0, collect, recording,
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
