/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_ELF_EXAMINE_H
#define BID_ELF_EXAMINE_H

#include <bid/id.h>

/*
 * As bid_elf_identify(), through libelf alone and by the sections first. Does not mind damage elsewhere in the file.
 */
int bid_elf_identify_by_libelf(int fd, struct bid_id *ret_id);

#endif
