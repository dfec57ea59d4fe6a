/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which build is this, where there is less than a file to tell it. */
#ifndef BID_ELF_IDENTIFY_H
#define BID_ELF_IDENTIFY_H

#include <stddef.h>

#include <bid/id.h>

/*
 * The id of a file that was mapped into memory, from the first @len bytes of the mapping. Its program headers are those that it was
 * mapped by, so there is no need to see all of the notes: some linkers place one of them pages behind the build-id. Returns 0,
 * -ENOEXEC for no ELF file, or -ENODATA if the bytes do not tell.
 */
int bid_elf_identify_mapped(const void *image, size_t len, struct bid_id *ret_id);

#endif
