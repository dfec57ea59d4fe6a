/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's lists of dynamic events: Documentation/trace/uprobetracer.rst, kprobetrace.rst. */
#ifndef BID_CTL_TRACEFS_H
#define BID_CTL_TRACEFS_H

#include <stdbool.h>

/* Where tracefs is mounted; NULL if it is not. Static. */
const char *ctl_tracefs(void);

/* "uprobe_events" or "kprobe_events" */
const char *ctl_tracefs_list(bool kernel);

/*
 * Write a line to that list. 0; -ENOTSUP if there is no such list; or as open(2) and write(2): -EINVAL if it does not take that
 * line, -ENOENT if it knows no such file or symbol. A line of an event that is there adds a place to it, if its arguments are the
 * same.
 */
int ctl_tracefs_write(bool kernel, const char *line);

/* Is there an event "GROUP/EVENT", of whatever kind? */
bool ctl_tracefs_has(const char *name);

/*
 * The first line of that list for the event "GROUP/EVENT", of those that are @line if that is not NULL; NULL if there is none, or
 * it cannot be read. The caller frees it. Behind "-" instead of what stands before its colon it removes that place alone.
 */
char *ctl_tracefs_find(bool kernel, const char *name, const char *line);

/* Is @listed, a line of such a list, what the kernel has made of @line? */
bool ctl_tracefs_is_same(const char *listed, const char *line);

#endif
