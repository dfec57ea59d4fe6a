/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of a file's sections. Not elf_strptr(3), which looks for the end of each name as far as it is: in a table of megabytes
 * without an end, that takes hours for as many sections as a file may have.
 */
#ifndef BID_ELF_NAMES_H
#define BID_ELF_NAMES_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

struct bid_elf_names {
	const char *text; /* libelf's, as long as the file is open in it; NULL if there is no table */
	size_t len; /* up to and with the last NUL */
};

/*
 * The table that the header of @elf names. Returns 0, also for a file whose sections have no names; -EBADMSG if it is none, or
 * larger than any; or as pread(2), or -ENOMEM.
 */
int bid_elf_names_find(Elf *elf, struct bid_elf_names *ret_names);

/* The name at @offset, which may be as long as the table, or NULL if there is none. */
static inline const char *bid_elf_name_at(const struct bid_elf_names *names, uint64_t offset)
{
	return offset < names->len ? names->text + offset : NULL;
}

#endif
