// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * In a linked file the program headers come first and its notes right behind them: the first 4 KiB contain the id. Section headers
 * are at the end, and cost a second read elsewhere on the disk. But only section headers are always right. A separate debug file
 * may have the program headers of the original file, whose offsets now point at other bytes (eu-strip -f writes such files).
 * Nothing in the header marks such a file. The reader therefore trusts the segments only if
 *   - each one consists of well-formed notes to its last byte: other bytes fail this test, and a build-id note at the right
 *     offset by chance is still a note of this file;
 *   - all their ids are equal: with two ids the order of the sections decides.
 * In all other cases the section headers decide. If the sections name no id, the id of the segments counts if they are sound or
 * there are no section headers.
 */

#include <errno.h>

#include "api/elf.h"
#include "base/limits.h"
#include "build_id.h"

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

/* the notes of the segments of a file */
struct segment_notes {
	struct bid_note_found found;
	bool sound; /* the segments are well-formed notes to the last byte */
	bool hidden; /* some notes lie behind the available bytes of the file */
};

/*
 * Scan the segments: headers through @headers, notes through @notes, because each read of one evicts the window of the other.
 * Segments of a relocatable file mean nothing. Errors as bid_elf_reader_at(), and -ENODATA without a program header table.
 */
static int scan_segments(struct bid_elf_reader *headers, struct bid_elf_reader *notes, const struct bid_header *header,
			 struct segment_notes *ret_segments)
{
	struct segment_notes segments = { .sound = true };
	int r;

	if (header->type == ET_REL)
		return -ENODATA;
	r = bid_header_check_table(headers, header->phoff, header->phnum, header->phentsize);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < header->phnum; i++) {
		struct bid_segment segment;

		r = bid_segment_at(headers, header, i, &segment);
		if (r < 0)
			return r;
		if (segment.type != PT_NOTE)
			continue;
		r = bid_note_scan(notes, &header->form, segment.offset, segment.size, segment.align, &segments.found);
		if (r == -EBADMSG || r == -ENODATA)
			segments.sound = false;
		else if (r == -EAGAIN)
			segments.hidden = true;
		else if (r < 0)
			return r;
	}
	*ret_segments = segments;
	return 0;
}

/* The first id in the order of the sections; len 0 if none. */
static int scan_sections(struct bid_elf_reader *headers, struct bid_elf_reader *notes, const struct bid_header *header,
			 struct bid_id *ret_id)
{
	const struct bid_form *form = &header->form;
	struct bid_note_found found = { 0 };
	int r;

	if (header->shnum > BID_LIMIT_SECTIONS)
		return -E2BIG;
	r = bid_header_check_table(headers, header->shoff, header->shnum, header->shentsize);
	if (r < 0)
		return r;
	for (uint64_t i = 1; i < header->shnum && found.id.len == 0; i++) {
		const uint8_t *data;

		r = bid_elf_reader_at(headers, header->shoff + i * header->shentsize, header->shentsize, &data);
		if (r < 0)
			return r;
		if (BID_FORM_FIELD(form, data, Shdr, sh_type) != SHT_NOTE)
			continue;
		r = bid_note_scan(notes, form, BID_FORM_FIELD(form, data, Shdr, sh_offset),
				  BID_FORM_FIELD(form, data, Shdr, sh_size), BID_FORM_FIELD(form, data, Shdr, sh_addralign),
				  &found);
		if (r < 0 && r != -EBADMSG && r != -ENODATA)
			return r;
	}
	*ret_id = found.id;
	return 0;
}

int bid_elf_reader_build_id(struct bid_elf_reader *reader, struct bid_id *ret_id)
{
	struct segment_notes segments = { 0 };
	struct bid_id id = { 0 };
	struct bid_header header;
	struct bid_elf_reader notes;
	int r;

	r = bid_header_read(reader, &header);
	if (r < 0)
		return r;
	/* the notes of a core file are about processes */
	if (header.type == ET_CORE)
		return -ENODATA;

	bid_elf_reader_init(&notes, reader->head, reader->head_len, reader->fd);
	r = scan_segments(reader, &notes, &header, &segments);
	if (r < 0 && r != -ENODATA)
		return r;
	if (segments.hidden)
		return -EAGAIN;
	if (segments.found.id.len > 0 && segments.sound && !segments.found.conflict) {
		*ret_id = segments.found.id;
		return 0;
	}

	if (header.shoff != 0 && header.shnum == 0) {
		r = bid_header_read_large_counts(reader, &header);
		if (r < 0)
			return r;
	}
	r = scan_sections(reader, &notes, &header, &id);
	if (r < 0 && r != -ENODATA)
		return r;
	if (id.len == 0 && (segments.sound || header.shoff == 0))
		id = segments.found.id;
	if (id.len == 0)
		return -ENODATA;
	*ret_id = id;
	return 0;
}

int bid_elf_build_id_in(const void *data, size_t len, struct bid_id *ret_id)
{
	struct bid_elf_reader reader;
	int r;

	bid_elf_reader_init(&reader, data, len, -1);
	r = bid_elf_reader_build_id(&reader, ret_id);
	return r == -E2BIG ? -EAGAIN : r;
}

int bid_elf_build_id(int fd, struct bid_id *ret_id)
{
	uint8_t head[BID_ELF_READER_HEAD];
	struct bid_elf_reader reader;
	int r = bid_elf_reader_open(&reader, head, fd);

	if (r < 0)
		return r;
	r = bid_elf_reader_build_id(&reader, ret_id);
	return r == -E2BIG ? -ENODATA : r;
}
