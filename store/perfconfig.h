/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading perf's configuration files: git's syntax, as of perf, util/config.c. */
#ifndef BID_PERFCONFIG_H
#define BID_PERFCONFIG_H

#include <stddef.h>

/*
 * Look up @key, "section.name" in lower case, in the @len bytes at @text. The last value wins. Returns 1 and the value of less than
 * @size bytes, 0 if it is not set, or
 *   -EINVAL		a malformed line anywhere in the file; sets @ret_line, which is otherwise left alone, to its number
 *   -ENAMETOOLONG	a value does not fit @size
 */
int bid_perfconfig_get(const char *text, size_t len, const char *key, char *ret_value, size_t size, unsigned *ret_line);

#endif
