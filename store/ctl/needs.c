// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/needs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <bid/elf.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/id_lines.h"

static enum ctl_status read_perf_data(const struct ctl *ctl, struct ctl_recording *needs)
{
	enum ctl_status status;

	needs->path = ctl->perf_data;
	status = ctl_recording_read(needs);
	if (status == CTL_DONE)
		ctl_recording_warn(needs);
	return status;
}

/* bid_elf_core_fn: the vDSO is none of its files, so all that has an id can be had */
static int take_core_file(void *user, const struct bid_elf_core_file *file)
{
	if (file->id.len == 0)
		return 0;
	return ctl_recording_add(user, &(struct bid_perfdata_dso){ .id = file->id, .sized = true, .path = file->path });
}

static const char *why_no_core(int error)
{
	switch (error) {
	case -ENOENT:
		return "no such file";
	case -ENOEXEC:
	case -EINVAL:
		return "not a core file";
	case -ENODATA:
		return "a core file that does not say what was mapped";
	case -EBADMSG:
		return "damaged or cut short";
	default:
		return strerror(-error);
	}
}

static enum ctl_status read_core(const struct ctl *ctl, struct ctl_recording *needs)
{
	bid_auto_fd int fd = open(ctl->core, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	int r = fd < 0 ? -errno : bid_elf_core_each(fd, take_core_file, needs);

	if (r < 0) {
		bid_error("%s: '%s'", why_no_core(r), ctl->core);
		return r == -EIO || r == -ENOMEM ? CTL_TROUBLE : CTL_REFUSED;
	}
	if (needs->n > 0)
		return CTL_DONE;
	bid_error("no build-id in it, which takes bit 4 of /proc/PID/coredump_filter: '%s'", ctl->core);
	return CTL_REFUSED;
}

/* ctl_id_line_fn */
static enum ctl_status take_line(void *user, const struct bid_id *id, const char *name)
{
	int r = ctl_recording_add(user, &(struct bid_perfdata_dso){ .id = *id, .sized = true, .path = name });

	if (r < 0)
		bid_error("%s", strerror(-r));
	return r < 0 ? CTL_TROUBLE : CTL_DONE;
}

enum ctl_status ctl_needs_read(const struct ctl *ctl, enum ctl_needs_from from, struct ctl_recording *needs)
{
	switch (from) {
	case CTL_NEEDS_PERF_DATA:
		return read_perf_data(ctl, needs);
	case CTL_NEEDS_CORE:
		return read_core(ctl, needs);
	default:
		return ctl_each_id_line(take_line, needs);
	}
}
