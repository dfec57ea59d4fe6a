/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Probes for a machine without bidctl: a shell script that checks the builds there and then sets them. */
#ifndef BID_CTL_PROBE_SCRIPT_H
#define BID_CTL_PROBE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <bid/id.h>

/* One event to be set. */
struct ctl_event {
	char *line; /* for the kernel's list; owned */
	char *name; /* "GROUP/EVENT"; owned */
	char *path; /* of the program's file; NULL for the kernel and its modules. Owned */
	char *module; /* of the kernel, that it is in; NULL for the kernel itself, and for programs. Owned */
};

/* The notes of module %s, as long as it is loaded (Linux, kernel/module/sysfs.c). */
#define CTL_MODULE_NOTES "/sys/module/%s/notes/.note.gnu.build-id"

/* Is what @events[@i] is set in, a file, a module or the kernel, that of none of those before it? */
bool ctl_event_is_first_of_target(const struct ctl_event *events, size_t i);

/*
 * Print the script that sets the @n events, which were resolved against @id, in that build only, all of them
 * or none; with @guru as of "probe apply --guru". It needs a POSIX shell with od, tr, awk and sed, and the right to write to
 * tracefs.
 */
void ctl_probe_script(FILE *out, const struct bid_id *id, const struct ctl_event *events, size_t n, unsigned guru);

#endif
