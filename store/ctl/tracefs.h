/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's lists of dynamic events: Documentation/trace/uprobetracer.rst, kprobetrace.rst. */
#ifndef BID_CTL_TRACEFS_H
#define BID_CTL_TRACEFS_H

#include <stdbool.h>

/* Return the mount point of tracefs, or NULL. Static. */
const char *ctl_tracefs(void);

/* Return "uprobe_events" or "kprobe_events". */
const char *ctl_tracefs_list(bool kernel);

/*
 * Write @line to that list. A line for an existing event with equal arguments adds a place to the event. Returns 0; -ENOTSUP
 * without such a list; or as open(2) and write(2): -EINVAL if the kernel rejects the line, -ENOENT for an unknown file or symbol.
 */
int ctl_tracefs_write(bool kernel, const char *line);

/* Does an event "GROUP/EVENT" of any kind exist? */
bool ctl_tracefs_has(const char *name);

/*
 * Return the first line of that list for the event "GROUP/EVENT", for the caller to free; with a @line (not NULL) only among equal
 * lines. Returns NULL without such a line, or if the list cannot be read. The line with "-" in place of the text before its colon
 * removes that place alone.
 */
char *ctl_tracefs_find(bool kernel, const char *name, const char *line);

/* Is @listed, a line of such a list, the kernel's form of @line? */
bool ctl_tracefs_is_same(const char *listed, const char *line);

#endif
