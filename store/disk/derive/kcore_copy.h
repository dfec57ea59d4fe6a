/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of perf's copy of /proc/kcore: "[kernel.kcore]/ID/TIMESTAMP/{kcore,kallsyms,modules}". */
#ifndef BID_DISK_KCORE_COPY_H
#define BID_DISK_KCORE_COPY_H

#include <stdbool.h>

/* Is @name a file name of such a copy? */
bool bid_kcore_has_file(const char *name);

/*
 * Is the file at @fd complete, as the file @name of a copy? perf writes kcore in place and its headers first, which contain its
 * length. The other files are text, and do not show truncation. Returns 0, -EBADMSG, or as bid_elf_examine().
 */
int bid_kcore_check(int fd, const char *name);

#endif
