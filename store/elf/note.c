// SPDX-License-Identifier: LGPL-2.1-or-later
#include "note.h"

#include <errno.h>

static uint64_t align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

static int add_id(struct bid_elf_reader *reader, uint64_t offset, size_t len, struct bid_note_found *found)
{
	const uint8_t *data;
	struct bid_id id;
	int r;

	r = bid_elf_reader_at(reader, offset, len, &data);
	if (r < 0)
		return r;
	r = bid_id_from_bytes(data, len, &id);
	if (r < 0)
		return r;
	if (found->id.len == 0)
		found->id = id;
	else if (!bid_id_equal(&found->id, &id))
		found->conflict = true;
	return 0;
}

/* Is the owner at @offset "GNU"? 1, 0 or as bid_elf_reader_at(). */
static int is_gnu(struct bid_elf_reader *reader, uint64_t offset)
{
	const uint8_t *name;
	int r;

	r = bid_elf_reader_at(reader, offset, sizeof(ELF_NOTE_GNU), &name);
	if (r < 0)
		return r;
	return memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0;
}

int bid_note_scan(struct bid_elf_reader *reader, const struct bid_form *form, uint64_t offset, uint64_t size, uint64_t align,
		  struct bid_note_found *found)
{
	int r;

	if (size == 0)
		return 0;
	r = bid_elf_reader_check(reader, offset, size);
	if (r < 0)
		return r;

	/* the gABI says 8 for class 64, the tools wrote 4; only an alignment of 8 means 8, as in elfutils and the kernel */
	align = align == 8 ? 8 : 4;

	for (uint64_t at = 0; at < size;) {
		const uint8_t *header;
		uint64_t name_len, desc_len, type, desc;

		/* a rest shorter than a note may be the padding of the last note */
		if (size - at < sizeof(Elf32_Nhdr))
			return size - at < align ? 0 : -EBADMSG;
		r = bid_elf_reader_at(reader, offset + at, sizeof(Elf32_Nhdr), &header);
		if (r < 0)
			return r;
		name_len = BID_FORM_FIELD(form, header, Nhdr, n_namesz);
		desc_len = BID_FORM_FIELD(form, header, Nhdr, n_descsz);
		type = BID_FORM_FIELD(form, header, Nhdr, n_type);

		/* at < size <= INT64_MAX and both lengths have 32 bits: no sum overflows */
		desc = align_up(at + sizeof(Elf32_Nhdr) + name_len, align);
		if (desc > size || desc_len > size - desc)
			return -EBADMSG;
		if (type == NT_GNU_BUILD_ID && name_len == sizeof(ELF_NOTE_GNU) && desc_len > 0 && desc_len <= BID_ID_MAX) {
			r = is_gnu(reader, offset + at + sizeof(Elf32_Nhdr));
			if (r > 0)
				r = add_id(reader, offset + desc, (size_t)desc_len, found);
			if (r < 0)
				return r;
		}
		at = align_up(desc + desc_len, align);
	}
	return 0;
}
