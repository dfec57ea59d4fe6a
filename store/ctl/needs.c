// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/needs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <bid/elf.h>
#include <bid/error.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/trouble.h"
#include "ctl/add.h"
#include "ctl/id_lines.h"
#include "ctl/maps.h"

static enum ctl_status read_perf_data(const struct ctl *ctl, struct ctl_recording *needs)
{
	enum ctl_status status;

	needs->path = ctl->perf_data;
	status = ctl_recording_read(needs, true);
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

struct process {
	const struct ctl *ctl;
	struct bid_store *store; /* borrowed; NULL to add nothing */
	struct ctl_recording *needs;
	dev_t dev; /* of the mapping before this one */
	ino_t ino;
};

static int take_mapping(void *user, const struct ctl_mapping *mapping)
{
	struct process *process = user;
	char path[PATH_MAX] = "";
	bid_auto_fd int fd = -1;
	struct bid_added added;
	struct bid_id id;
	int r;

	if (mapping->dev == process->dev && mapping->ino == process->ino)
		return 0;
	process->dev = mapping->dev;
	process->ino = mapping->ino;
	fd = ctl_mapping_open(mapping, path);
	r = fd < 0 ? fd : bid_elf_identify(fd, &id);
	/* it has ended, or this is a device, or code that is in no ELF file */
	if (r == -ESRCH || r == -EINVAL || r == -ENOEXEC || r == -ENODATA)
		return 0;
	if (r < 0) {
		bid_warning("%s, so that it is not known which build it is: '%s'", strerror(-r), mapping->path);
		return 0;
	}
	r = ctl_recording_add(process->needs, &(struct bid_perfdata_dso){ .id = id, .sized = true, .path = path });
	if (r < 0 || !process->store)
		return r;
	r = bid_store_add_file(process->store, &(struct bid_add){ .path = path, .fd = fd, .link = process->ctl->link }, &added);
	if (r == 0)
		process->needs->builds[process->needs->n - 1].state = added.known ? CTL_BUILD_KNOWN : CTL_BUILD_ADDED;
	return bid_is_trouble(r) ? r : 0;
}

static enum ctl_status read_process(const struct ctl *ctl, struct bid_store *store, struct ctl_recording *needs)
{
	struct process process = { .ctl = ctl, .store = store, .needs = needs };
	int r;

	if (!*ctl->pid || strlen(ctl->pid) > 10 || strspn(ctl->pid, "0123456789") != strlen(ctl->pid))
		return ctl_usage("not the number of a process: '%s'", ctl->pid);
	r = ctl_maps_each(ctl->pid, take_mapping, &process);
	if (r == 0 && needs->n > 0)
		return CTL_DONE;
	bid_error("%s: process '%s'",
		  r == 0	 ? "it has ended, or has nothing mapped that has a build-id"
		  : r == -ENOENT ? "no such process"
				 : bid_strerror(r),
		  ctl->pid);
	return r == 0 || r == -ENOENT || r == -EACCES ? CTL_REFUSED : CTL_TROUBLE;
}

/* ctl_id_line_fn */
static enum ctl_status take_line(void *user, const struct bid_id *id, const char *name)
{
	int r = ctl_recording_add(user, &(struct bid_perfdata_dso){ .id = *id, .sized = true, .path = name });

	if (r < 0)
		bid_error("%s", strerror(-r));
	return r < 0 ? CTL_TROUBLE : CTL_DONE;
}

enum ctl_status ctl_needs_read(const struct ctl *ctl, enum ctl_needs_from from, struct bid_store *store,
			       struct ctl_recording *needs)
{
	switch (from) {
	case CTL_NEEDS_PERF_DATA:
		return read_perf_data(ctl, needs);
	case CTL_NEEDS_CORE:
		return read_core(ctl, needs);
	case CTL_NEEDS_PID:
		return read_process(ctl, store, needs);
	default:
		return ctl_each_id_line(take_line, needs);
	}
}
