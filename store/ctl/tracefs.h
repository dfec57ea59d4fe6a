/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's lists of dynamic events: Documentation/trace/uprobetracer.rst, kprobetrace.rst. */
#ifndef BID_CTL_TRACEFS_H
#define BID_CTL_TRACEFS_H

#include <stdbool.h>

/* Where tracefs is mounted; NULL if it is not. Static. */
const char *ctl_tracefs(void);

/* "uprobe_events" or "kprobe_events" */
const char *ctl_tracefs_list(bool kernel);

/* Write a line to that list. 0, or as open(2) and write(2): -ENOENT without such a list, -EINVAL if it does not take that line. */
int ctl_tracefs_write(bool kernel, const char *line);

#endif
