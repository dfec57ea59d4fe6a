// SPDX-License-Identifier: LGPL-2.1-or-later
#include "skeleton.h"

#include "base/io.h"
#include "base/limits.h"

enum {
	ABBREVS_MAX = 128, /* bytes of a table that are looked at: the first entry is a unit's, and short */
	UT_SKELETON = 0x04, /* DW_UT_skeleton */
	AT_GNU_DWO_NAME = 0x2130, /* DW_AT_GNU_dwo_name */
	LENGTH_64 = 0xffffffff, /* of 64-bit DWARF: the length follows */
};

static size_t read_some(int fd, const struct bid_section *section, uint64_t at, uint8_t *data, size_t room)
{
	ssize_t n;

	if (at >= section->size || section->flags & SHF_COMPRESSED)
		return 0;
	n = bid_pread_full(fd, data, section->size - at < room ? (size_t)(section->size - at) : room,
			   (off_t)(section->offset + at));
	return n < 0 ? 0 : (size_t)n;
}

/* An unsigned LEB128 number, of which large values are cut. Moves @at behind it. False at the end of the data. */
static bool read_number(const uint8_t *data, size_t len, size_t *at, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (unsigned shift = 0; *at < len; shift += 7) {
		uint8_t byte = data[(*at)++];

		if (shift < 64)
			number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_number = number;
			return true;
		}
	}
	return false;
}

/* Has the first entry of the table at @offset, which is to be that of @code, the name of a .dwo file among its attributes? */
static bool names_dwo(int fd, const struct bid_section *abbrev, uint64_t offset, uint8_t code)
{
	uint8_t data[ABBREVS_MAX];
	size_t len = read_some(fd, abbrev, offset, data, sizeof(data)), at = 0;
	uint64_t number, tag, attribute = 1, form = 1;

	if (!read_number(data, len, &at, &number) || number != code || !read_number(data, len, &at, &tag) || at++ >= len)
		return false;
	while (attribute != AT_GNU_DWO_NAME && (attribute || form))
		if (!read_number(data, len, &at, &attribute) || !read_number(data, len, &at, &form))
			return false;
	return attribute == AT_GNU_DWO_NAME;
}

bool bid_elf_is_skeleton(int fd, const struct bid_form *form, const struct bid_section *info, const struct bid_section *abbrev)
{
	uint8_t data[BID_BYTES_WINDOW];
	size_t len = read_some(fd, info, 0, data, sizeof(data)), at = 0;

	/* the largest header before the first entry: 4 + 8 of length, 2 of version, 8 + 1, and the number of the entry */
	for (unsigned i = 0; i < BID_LIMIT_UNITS && len - at >= 24; i++) {
		const uint8_t *unit = data + at;
		uint64_t length = bid_form_load(form, unit, 4);
		size_t wide = length == LENGTH_64 ? 8 : 4, head = length == LENGTH_64 ? 12 : 4;
		unsigned version = (unsigned)bid_form_load(form, unit + head, 2);

		if (head == 12)
			length = bid_form_load(form, unit + 4, 8);
		if (version == 5 ? unit[head + 2] == UT_SKELETON
				 : version == 4 && names_dwo(fd, abbrev, bid_form_load(form, unit + head + 2, wide),
							     unit[head + 2 + wide + 1]))
			return true;
		if (version < 2 || version > 5 || length > len - at - head)
			return false;
		at += head + (size_t)length;
	}
	return false;
}
