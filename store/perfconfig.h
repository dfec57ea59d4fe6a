/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading perf's configuration files: git's syntax, as of perf, util/config.c. */
#ifndef BID_PERFCONFIG_H
#define BID_PERFCONFIG_H

/*
 * Look up "buildid.dir" in @text. The last value wins. Returns 1 and the value, which lies in @text; 0 if it is not set; or -EINVAL
 * and the number of a malformed line in @ret_line. Changes @text.
 */
int bid_perfconfig_dir(char *text, const char **ret_dir, unsigned *ret_line);

#endif
