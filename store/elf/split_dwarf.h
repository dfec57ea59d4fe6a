/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Split DWARF (DWARF 5, 3.1.2 "Skeleton Compilation Unit Entries"; in DWARF 4 an extension of GNU). */
#ifndef BID_ELF_SPLIT_DWARF_H
#define BID_ELF_SPLIT_DWARF_H

#include "sections.h"

/*
 * Is one of the first units in @info (.debug_info) a skeleton, with its rest in a .dwo file or a .dwp? @abbrev is .debug_abbrev.
 * Costs one read of at most BID_ELF_READER_WINDOW, and one more for each of a few units of DWARF 4. Returns false also for
 * unreadable sections and for compression with zstd.
 */
bool bid_elf_is_skeleton(int fd, const struct bid_form *form, const struct bid_section *info, const struct bid_section *abbrev);

#endif
