/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results of libelf, for comparison with store/elf. libelf trusts the sizes in the file. */
#ifndef BID_TESTS_BY_LIBELF_H
#define BID_TESTS_BY_LIBELF_H

#include "api/elf.h"

/* As bid_elf_build_id(), by the sections first. Does not mind damage elsewhere in the file. */
int by_libelf_identify(int fd, struct bid_id *ret_id);

/* As bid_elf_examine(). */
int by_libelf_examine(int fd, struct bid_elf_info *ret_info);

#endif
