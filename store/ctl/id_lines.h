/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build-ids on standard input. */
#ifndef BID_CTL_ID_LINES_H
#define BID_CTL_ID_LINES_H

#include "ctl/ctl.h"

/* @name is the text behind the id, or "". A result other than CTL_DONE ends the reading, and is returned. */
typedef enum ctl_status (*ctl_id_line_fn)(void *user, const struct bid_id *id, const char *name);

/*
 * Call @fn for each line of standard input: "ID", or "ID NAME" as perf-buildid-list(1) prints them. Skips empty lines. Returns
 * CTL_DONE; the result of @fn; CTL_USAGE after the last line if a line begins with no id; or CTL_TROUBLE. An error message comes
 * before each result but CTL_DONE.
 */
enum ctl_status ctl_each_id_line(ctl_id_line_fn fn, void *user);

#endif
