// SPDX-License-Identifier: LGPL-2.1-or-later
/* The header of a file, where its data is, and the table of build-ids behind the data. */
#include <errno.h>

#include "base/byte_order.h"
#include "perfdata/recording.h"

/* where things are in the header (perf, util/header.h, struct perf_file_header) */
enum {
	HEADER_SIZE = 8,
	HEADER_ATTR_SIZE = 16,
	HEADER_ATTRS = 24,
	HEADER_DATA = 40,
	HEADER_FEATURES = 72,
	PIPE_HEADER = 16,
	OLD_HEADER = 72, /* without features */
	WHOLE_HEADER = 104,
	SECTION = 16, /* offset and size, both u64 */
};

/* More kinds of events than anybody records at once. */
#define ATTRS_MAX 4096u

struct recording_header {
	uint64_t size; /* PIPE_HEADER in pipe mode */
	uint64_t attrs, attrs_size, attr_size;
	uint64_t data, data_size;
	uint64_t features; /* the first 64 */
};

/*
 * Read the byte order from the magic. The first version has a magic in text; there the size of the header decides, because it is
 * small.
 */
static int read_magic(const uint8_t *head, bool *ret_big)
{
	if (memcmp(head, "PERFILE2", 8) == 0)
		*ret_big = false;
	else if (memcmp(head, "2ELIFREP", 8) == 0)
		*ret_big = true;
	else if (memcmp(head, "PERFFILE", 8) == 0)
		*ret_big = bid_load64(false, head + HEADER_SIZE) > UINT32_MAX;
	else
		return -EINVAL;
	return 0;
}

/*
 * The bitmap of features is a long of the recorder. On a big-endian machine with longs of 32 bits, the halves are swapped. The
 * host's name is always among the features, and shows the order.
 */
static uint64_t read_features(bool big, const uint8_t *bitmap)
{
	uint64_t features = bid_load64(big, bitmap), halves = features << 32 | features >> 32;

	if (big && !(features & 1 << BID_FEATURE_HOSTNAME) &&
	    (halves & 1 << BID_FEATURE_HOSTNAME || !(features & 1 << BID_FEATURE_BUILD_ID)))
		return halves;
	return features;
}

/* Read the header into @header, and leave @input behind it. Returns 0, -EINVAL for no header, -ENODATA for a truncated one. */
static int read_header(struct bid_perf *perf, struct bid_input *input, struct recording_header *header)
{
	const uint8_t *head;
	ssize_t have = bid_input_look(input, WHOLE_HEADER, &head);
	int r;

	if (have < 0)
		return (int)have;
	if (have < PIPE_HEADER)
		return -EINVAL;
	r = read_magic(head, &perf->big);
	if (r < 0)
		return r;
	header->size = bid_load64(perf->big, head + HEADER_SIZE);
	if (header->size == PIPE_HEADER) {
		bid_input_take(input, PIPE_HEADER);
		return 0;
	}
	if (header->size < OLD_HEADER || header->size > UINT16_MAX)
		return -EINVAL;
	if (have < (header->size < WHOLE_HEADER ? OLD_HEADER : WHOLE_HEADER))
		return -ENODATA;
	header->attr_size = bid_load64(perf->big, head + HEADER_ATTR_SIZE);
	header->attrs = bid_load64(perf->big, head + HEADER_ATTRS);
	header->attrs_size = bid_load64(perf->big, head + HEADER_ATTRS + 8);
	header->data = bid_load64(perf->big, head + HEADER_DATA);
	header->data_size = bid_load64(perf->big, head + HEADER_DATA + 8);
	if (header->size >= WHOLE_HEADER)
		header->features = read_features(perf->big, head + HEADER_FEATURES);
	return 0;
}

/* Go to @offset, and report if that is impossible. Returns 1, 0 if it is impossible, or a negative errno. */
static int go_to(struct bid_perf *perf, struct bid_input *input, uint64_t offset, const char *what)
{
	uint64_t here = input->offset;
	int r = bid_input_go(input, offset);

	if (r == -ENODATA)
		perf->summary.cut = true;
	else if (r == -ESPIPE)
		bid_perf_damage(perf, what, here);
	return r == 0 ? 1 : r == -ENODATA || r == -ESPIPE ? 0 : r;
}

static int read_table(struct bid_perf *perf, struct bid_input *input, uint64_t offset, uint64_t size)
{
	uint64_t end = size < UINT64_MAX - offset ? offset + size : UINT64_MAX;
	int r = go_to(perf, input, offset, "the place of the table of build-ids");

	while (r > 0 && input->offset < end) {
		const uint8_t *data;
		ssize_t have = bid_input_look(input, BID_PERF_EVENT_MAX, &data), n = have;
		bool last = have >= 0 && (uint64_t)have >= end - input->offset;

		if (have >= 0)
			n = bid_perf_event_table(perf, data, last ? (size_t)(end - input->offset) : (size_t)have, input->offset);
		if (n < 0)
			return (int)n;
		bid_input_take(input, (size_t)n);
		if (n > 0)
			continue;
		if (last || have >= (ssize_t)BID_PERF_EVENT_MAX)
			bid_perf_damage(perf, BID_PERF_TABLE_DAMAGE, input->offset);
		else
			perf->summary.cut = true;
		return 0;
	}
	return r < 0 ? r : 0;
}

/* Read the sections. A list of them follows the data, one for each feature present, in the order of their numbers. */
static int read_sections(struct bid_perf *perf, struct bid_input *input, const struct recording_header *header)
{
	const uint64_t before = header->features & ((1u << BID_FEATURE_BUILD_ID) - 1);
	size_t at = (size_t)__builtin_popcountll(before) * SECTION;
	const uint8_t *list;
	ssize_t have;
	int r;

	if (!(header->features & 1 << BID_FEATURE_BUILD_ID))
		return 0;
	r = go_to(perf, input, header->data + header->data_size, "the place of the features");
	if (r <= 0)
		return r;
	have = bid_input_look(input, at + SECTION, &list);
	if (have < 0)
		return (int)have;
	if ((size_t)have < at + SECTION) {
		perf->summary.cut = true;
		return 0;
	}
	return read_table(perf, input, bid_load64(perf->big, list + at), bid_load64(perf->big, list + at + 8));
}

/*
 * Read the layout of the samples. Without it the reader does not count them: in a pipe, the attributes must precede the data, as
 * perf record writes them. Leaves @input anywhere.
 */
static int read_attrs(struct bid_perf *perf, struct bid_input *input, const struct recording_header *header)
{
	const size_t least = BID_ATTR_TYPE + sizeof(uint64_t);
	uint64_t end;

	if (header->attr_size < least || header->attrs_size > UINT64_MAX - header->attrs)
		return 0;
	end = header->attrs + header->attrs_size;
	if (!input->seekable && end > header->data)
		return 0;
	for (uint64_t at = header->attrs, n = 0; at < end && end - at >= header->attr_size && n < ATTRS_MAX; n++) {
		const uint8_t *attr;
		ssize_t have;
		int r = bid_input_go(input, at);

		if (r < 0)
			return r == -ENODATA || r == -ESPIPE ? 0 : r;
		have = bid_input_look(input, least, &attr);
		if (have < 0 || (size_t)have < least)
			return have < 0 ? (int)have : 0;
		bid_samples_type(&perf->samples, bid_load64(perf->big, attr + BID_ATTR_TYPE));
		at += header->attr_size;
	}
	return 0;
}

static bool ranges_overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b ? b - a < a_size : a - b < b_size;
}

/* Returns 1 if there is data to read, 0 if not, or a negative errno. */
static int go_to_data(struct bid_perf *perf, struct bid_input *input, const struct recording_header *header)
{
	if (header->data < header->size || ranges_overlap(header->data, header->data_size, header->attrs, header->attrs_size)) {
		/* perf inject up to 6.1, from a pipe to a file, writes the header over the first records */
		bid_perf_damage(perf, "data where the header or the attributes are", HEADER_DATA);
		return 0;
	}
	return go_to(perf, input, header->data, "the place of the data");
}

int bid_features_read(struct bid_perf *perf, struct bid_input *input)
{
	struct recording_header header = { 0 };
	int r = read_header(perf, input, &header);

	if (r == -ENODATA) {
		perf->summary.cut = true;
		return 0;
	}
	if (r < 0)
		return r;
	if (header.size == PIPE_HEADER)
		return bid_stream_read(perf, input, UINT64_MAX);
	if (header.data_size > UINT64_MAX - header.data) {
		bid_perf_damage(perf, "the size of the data", HEADER_DATA);
		header.data_size = 0;
	}
	/* perf record sets the size at its end */
	perf->summary.interrupted = header.data_size == 0;
	r = perf->samples.wanted ? read_attrs(perf, input, &header) : 0;
	if (r == 0)
		r = go_to_data(perf, input, &header);
	if (r > 0)
		r = bid_stream_read(perf, input, header.data_size ? header.data + header.data_size : UINT64_MAX);
	return r < 0 || header.data_size == 0 ? r : read_sections(perf, input, &header);
}
