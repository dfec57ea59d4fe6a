// SPDX-License-Identifier: LGPL-2.1-or-later
#include "names.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "examine.h"

/* Bytes of a compressed table when it is unpacked; the largest that is known has 20 MiB, of half a million sections. */
#define UNPACKED_MAX (256u << 20)

/* The bytes of the table @scn. NULL if it has none. */
static Elf_Data *data_of(Elf_Scn *scn, const GElf_Shdr *shdr)
{
	GElf_Chdr chdr;

	if (!(shdr->sh_flags & SHF_COMPRESSED))
		return elf_rawdata(scn, NULL);
	if (!gelf_getchdr(scn, &chdr) || chdr.ch_size > UNPACKED_MAX || elf_compress(scn, 0, 0) < 0)
		return NULL;
	return elf_getdata(scn, NULL);
}

int bid_elf_names_find(Elf *elf, struct bid_elf_names *ret_names)
{
	struct bid_elf_names names = { 0 };
	Elf_Data *data = NULL;
	const char *last;
	GElf_Shdr shdr;
	size_t index;
	Elf_Scn *scn;

	errno = 0;
	if (elf_getshdrstrndx(elf, &index) < 0)
		return bid_elf_error(-EBADMSG);
	if (index == SHN_UNDEF) {
		*ret_names = names;
		return 0;
	}
	scn = elf_getscn(elf, index);
	if (scn && gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_STRTAB)
		data = data_of(scn, &shdr);
	if (!data || !data->d_buf)
		return bid_elf_error(-EBADMSG);
	names.text = data->d_buf;
	last = memrchr(names.text, '\0', data->d_size);
	if (last)
		names.len = (size_t)(last + 1 - names.text);
	*ret_names = names;
	return 0;
}
