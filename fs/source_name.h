/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_FS_SOURCE_NAME_H
#define BID_FS_SOURCE_NAME_H

#include <stdbool.h>

/* Is @name what compilers call a file that code is in: "a.c", "start.S", "parse.tab.yy"? */
bool bid_source_has_name(const char *name);

#endif
