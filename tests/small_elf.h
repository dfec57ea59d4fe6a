/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The smallest file with a build-id: for tests that need very many, or one that no tool makes. */
#ifndef BID_TESTS_SMALL_ELF_H
#define BID_TESTS_SMALL_ELF_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SMALL_ELF_ID_LEN = 20 };

struct small_elf {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Nhdr note;
	char owner[4];
	uint8_t id[SMALL_ELF_ID_LEN];
};

/* In the byte order of this machine. */
static inline struct small_elf small_elf(const uint8_t id[static SMALL_ELF_ID_LEN])
{
	struct small_elf elf = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = offsetof(struct small_elf, segment),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1 },
		.segment = { .p_type = PT_NOTE,
			     .p_flags = PF_R,
			     .p_offset = offsetof(struct small_elf, note),
			     .p_filesz = sizeof(elf) - offsetof(struct small_elf, note),
			     .p_memsz = sizeof(elf) - offsetof(struct small_elf, note),
			     .p_align = 4 },
		.note = { .n_namesz = 4, .n_descsz = SMALL_ELF_ID_LEN, .n_type = NT_GNU_BUILD_ID },
		.owner = "GNU",
	};

	memcpy(elf.id, id, sizeof(elf.id));
	return elf;
}

#endif
