/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of a copy of /proc/kcore, as perf makes it: "[kernel.kcore]/ID/STAMP/{kcore,kallsyms,modules}". */
#ifndef BID_DISK_KCORE_H
#define BID_DISK_KCORE_H

#include <stdbool.h>

/* Is @name that of a file of a copy? */
bool bid_kcore_has_file(const char *name);

/*
 * Is what is open at @fd whole, to be the file @name of a copy? perf writes kcore in its place, its headers first, which tell how
 * much is to follow; of the others, which are text, it is not to be seen. 0, -EBADMSG, or as bid_elf_examine().
 */
int bid_kcore_check(int fd, const char *name);

#endif
