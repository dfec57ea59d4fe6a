/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Probes for a machine without bidctl: a shell script that checks the builds of that machine and sets the probes. */
#ifndef BID_CTL_PROBE_SCRIPT_H
#define BID_CTL_PROBE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <bid/id.h>

/* One event to be set. */
struct ctl_event {
	char *line; /* line for the kernel's list; owned */
	char *name; /* "GROUP/EVENT"; owned */
	char *path; /* file of the program; NULL for the kernel and its modules. Owned */
	char *module; /* kernel module of the event; NULL for the kernel itself, and for programs. Owned */
};

/* Notes of the loaded module %s (Linux, kernel/module/sysfs.c). */
#define CTL_MODULE_NOTES "/sys/module/%s/notes/.note.gnu.build-id"

/* Is the target of @events[@i] (a file, a module or the kernel) new among the events before it? */
bool ctl_event_is_first_of_target(const struct ctl_event *events, size_t i);

/*
 * Print the script that sets the @n events, resolved against @id, in that build alone: all of them or none. @guru is that of "probe
 * apply --guru". The script needs a POSIX shell with od, tr, awk and sed, and the right to write to tracefs.
 */
void ctl_probe_script(FILE *out, const struct bid_id *id, const struct ctl_event *events, size_t n, unsigned guru);

#endif
