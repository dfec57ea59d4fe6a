/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build-ids on standard input. */
#ifndef BID_CTL_ID_LINES_H
#define BID_CTL_ID_LINES_H

#include "ctl/ctl.h"

/* @name is what stands behind the id, "" if nothing does. What is not CTL_DONE ends the reading, and is returned. */
typedef enum ctl_status (*ctl_id_line_fn)(void *user, const struct bid_id *id, const char *name);

/*
 * Call @fn for each line of standard input: "ID", or "ID NAME" as perf-buildid-list(1) prints them; empty ones are passed over.
 * Returns CTL_DONE, what @fn returned, CTL_USAGE after all others if a line begins with no id, or CTL_TROUBLE, each after an error
 * message.
 */
enum ctl_status ctl_each_id_line(ctl_id_line_fn fn, void *user);

#endif
