/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_ELF_EXAMINE_H
#define BID_ELF_EXAMINE_H

#include <errno.h>
#include <gelf.h>

#include <bid/elf.h>

/*
 * libelf's view of the file open at @fd, which must stay open as long; never mapped, so that a file that is cut short meanwhile is
 * an error and no signal. -ENOEXEC, -EBADMSG for one with more sections than any has, -ENOMEM, or as pread(2).
 */
int bid_elf_open(int fd, Elf **ret_elf, GElf_Ehdr *ret_ehdr);

void bid_elf_cleanup(Elf **elf);

/*
 * What libelf has failed with. Its own codes are private; malloc(3) and pread(2) below it leave errno behind, which the caller has
 * cleared. @otherwise if it does not tell.
 */
static inline int bid_elf_error(int otherwise)
{
	return errno == ENOMEM || errno == EIO || errno == ESTALE ? -errno : otherwise;
}

/*
 * As bid_elf_identify(), through libelf alone and by the sections first. Does not mind damage elsewhere in the file.
 */
int bid_elf_identify_by_libelf(int fd, struct bid_id *ret_id);

/* bid_elf_examine() through libelf alone. */
int bid_elf_examine_by_libelf(int fd, struct bid_elf_info *ret_info);

#endif
