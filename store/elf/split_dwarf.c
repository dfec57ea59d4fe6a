// SPDX-License-Identifier: LGPL-2.1-or-later
/* Split DWARF. */
#include "api/elf.h"
#include "base/byte_order.h"
#include "base/io.h"
#include "base/limits.h"

enum {
	UNITS_MAX = 16384, /* bytes of units to examine */
	ABBREVS_MAX = 128, /* bytes of a table to examine: its first entry belongs to a unit, and is short */
	UT_SKELETON = 0x04, /* DW_UT_skeleton */
	AT_GNU_DWO_NAME = 0x2130, /* DW_AT_GNU_dwo_name */
	LENGTH_64 = 0xffffffff, /* mark of 64-bit DWARF: the length follows */
};

/* A section of DWARF in a file. */
struct dwarf_source {
	int fd; /* borrowed */
	struct bid_elf_section section; /* without bytes if there is none */
};

static size_t read_at(const struct dwarf_source *source, uint64_t at, uint8_t *data, size_t room)
{
	uint64_t left = at < source->section.size ? source->section.size - at : 0;
	ssize_t n = bid_pread_full(source->fd, data, left < room ? (size_t)left : room, (off_t)(source->section.offset + at));

	return n < 0 ? 0 : (size_t)n;
}

/* Read an unsigned LEB128 number; large values are truncated. Moves *@at behind it. Returns false at the end of the data. */
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

/* Does the first entry of the table at @offset have code @code and the name of a .dwo file among its attributes? */
static bool names_dwo(const struct dwarf_source *abbrev, uint64_t offset, uint8_t code)
{
	uint8_t data[ABBREVS_MAX];
	size_t len = read_at(abbrev, offset, data, sizeof(data)), at = 0;
	uint64_t number, tag, attribute = 1, form = 1;

	if (!read_number(data, len, &at, &number) || number != code || !read_number(data, len, &at, &tag) || at++ >= len)
		return false;
	while (attribute != AT_GNU_DWO_NAME && (attribute || form))
		if (!read_number(data, len, &at, &attribute) || !read_number(data, len, &at, &form))
			return false;
	return attribute == AT_GNU_DWO_NAME;
}

static bool has_skeleton(const struct dwarf_source *units, const struct dwarf_source *abbrevs)
{
	uint8_t data[UNITS_MAX];
	bool big = units->section.big;
	size_t len = read_at(units, 0, data, sizeof(data)), at = 0;

	/* the largest header before the first entry: 4 + 8 of length, 2 of version, 8 + 1, and the number of the entry */
	for (unsigned i = 0; i < BID_LIMIT_UNITS && len - at >= 24; i++) {
		const uint8_t *unit = data + at;
		uint64_t length = bid_load32(big, unit);
		size_t wide = length == LENGTH_64 ? 8 : 4, head = length == LENGTH_64 ? 12 : 4;
		unsigned version = bid_load16(big, unit + head);
		uint64_t table = wide == 8 ? bid_load64(big, unit + head + 2) : bid_load32(big, unit + head + 2);

		if (head == 12)
			length = bid_load64(big, unit + 4);
		if (version == 5 ? unit[head + 2] == UT_SKELETON
				 : version == 4 && names_dwo(abbrevs, table, unit[head + 2 + wide + 1]))
			return true;
		if (version < 2 || version > 5 || length > len - at - head)
			return false;
		at += head + (size_t)length;
	}
	return false;
}

/* Find a section of the file; one without bytes if it is absent or compressed. */
static struct dwarf_source find_source(int fd, const char *name)
{
	struct bid_elf_section section;
	bool found = bid_elf_find_section(fd, name, &section) == 0 && !section.compressed;

	return (struct dwarf_source){ .fd = fd, .section = found ? section : (struct bid_elf_section){ 0 } };
}

bool bid_elf_is_skeleton(int fd)
{
	struct dwarf_source units = find_source(fd, ".debug_info"), abbrevs = find_source(fd, ".debug_abbrev");

	return has_skeleton(&units, &abbrevs);
}
