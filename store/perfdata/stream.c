// SPDX-License-Identifier: LGPL-2.1-or-later
/* A stream of records: select the records to read, and find the next record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/byte_order.h"
#include "base/cleanup.h"
#include "perfdata/recording.h"

/* Much larger than a record, to move few bytes; small enough for the second-level cache. */
#define ROOM (256u << 10)

/* Compressed recordings shrink 3 to 50 times; short and uniform ones may exceed that. */
#define GROWTH_MAX   1024u
#define GROWTH_START (256u << 20)

/* where things are in the records */
enum {
	TRACING_DATA_SIZE = 8,
	AUXTRACE_SIZE = 8,
	FEATURE_NUMBER = 8,
	FEATURE_DATA = 16,
	COMPRESSED_DATA = 8,
	COMPRESSED2_SIZE = 8,
	COMPRESSED2_DATA = 16,
};

struct stream {
	struct bid_perf *perf;
	uint64_t offset; /* offset in the file of the data; for compressed data, of its record */
	uint64_t behind; /* bytes behind the last record that belong to no record */
	bool inner; /* the stream of the decompressed data */
};

/* The outer stream of a file, and the inner one, if there is any: one stream of zstd frames over all compressed records. */
struct streams {
	struct stream outer, inner;
	ZSTD_DStream *zstd; /* owned; NULL without compressed data, as is the buffer */
	uint8_t *buffer; /* owned; ROOM bytes, for what is decompressed and not yet scanned */
	size_t len; /* bytes in the buffer */
	uint64_t packed, unpacked; /* bytes so far */
	bool broken; /* the compressed data is damaged: the rest cannot be read */
};

static void streams_release(struct streams *streams)
{
	ZSTD_freeDStream(streams->zstd);
	free(streams->buffer);
}

static int scan_compressed(struct streams *streams, const struct bid_perf_event *record);

static int take_table(struct bid_perf *perf, const struct bid_perf_event *record)
{
	size_t len = record->size - FEATURE_DATA;
	ssize_t n = bid_perf_event_table(perf, record->data + FEATURE_DATA, len, record->offset);

	if (n >= 0 && (size_t)n < len)
		bid_perf_damage(perf, BID_PERF_TABLE_DAMAGE, record->offset + (size_t)n);
	return n < 0 ? (int)n : 0;
}

/* Read one selected record. Returns 0, -EBADMSG if the next record cannot be found, or another error. */
static int take_record(struct streams *streams, struct stream *stream, const struct bid_perf_event *record)
{
	bool big = stream->perf->big;

	switch (record->type) {
	case BID_PERF_EVENT_MMAP:
	case BID_PERF_EVENT_MMAP2:
		return bid_perf_event_mapping(stream->perf, record);
	case BID_PERF_EVENT_ATTR:
	case BID_PERF_EVENT_FORK:
	case BID_PERF_EVENT_SAMPLE:
		return bid_perf_event_sampled(stream->perf, record);
	case BID_PERF_EVENT_BUILD_ID:
		return bid_perf_event_build_id(stream->perf, record);
	case BID_PERF_EVENT_TRACING_DATA:
		if (record->size < TRACING_DATA_SIZE + sizeof(uint32_t))
			return -EBADMSG;
		stream->behind = bid_load32(big, record->data + TRACING_DATA_SIZE);
		return 0;
	case BID_PERF_EVENT_AUXTRACE:
		if (record->size < AUXTRACE_SIZE + sizeof(uint64_t))
			return -EBADMSG;
		stream->behind = bid_load64(big, record->data + AUXTRACE_SIZE);
		return 0;
	case BID_PERF_EVENT_FEATURE:
		if (record->size < FEATURE_DATA || bid_load64(big, record->data + FEATURE_NUMBER) != BID_FEATURE_BUILD_ID)
			return 0;
		return take_table(stream->perf, record);
	default:
		return stream->inner ? -EBADMSG : scan_compressed(streams, record);
	}
}

static bool is_wanted(const struct bid_perf *perf, uint32_t type)
{
	switch (type) {
	case BID_PERF_EVENT_ATTR:
	case BID_PERF_EVENT_FORK:
	case BID_PERF_EVENT_SAMPLE:
		return perf->samples.wanted;
	case BID_PERF_EVENT_MMAP:
	case BID_PERF_EVENT_MMAP2:
	case BID_PERF_EVENT_TRACING_DATA:
	case BID_PERF_EVENT_BUILD_ID:
	case BID_PERF_EVENT_AUXTRACE:
	case BID_PERF_EVENT_FEATURE:
	case BID_PERF_EVENT_COMPRESSED:
	case BID_PERF_EVENT_COMPRESSED2:
		return true;
	default:
		return false;
	}
}

/*
 * Take whole records from the @len bytes at @data, up to a record with other bytes behind it. Returns the length of the records,
 * -EBADMSG if it is unknown, or another error. All bytes of a recording pass through this loop.
 */
static ptrdiff_t scan_records(struct streams *streams, struct stream *stream, const uint8_t *data, size_t len)
{
	bool big = stream->perf->big;
	uint64_t records = 0;
	size_t at = 0;
	int r = 0;

	while (len - at >= BID_PERF_EVENT_HEAD) {
		uint64_t word = bid_load64(big, data + at);
		struct bid_perf_event record = {
			.type = big ? (uint32_t)(word >> 32) : (uint32_t)word,
			.misc = big ? (uint16_t)(word >> 16) : (uint16_t)(word >> 32),
			.size = big ? (uint16_t)word : (uint16_t)(word >> 48),
		};

		if (record.size < BID_PERF_EVENT_HEAD) {
			r = -EBADMSG;
			break;
		}
		if (record.size > len - at)
			break;
		records++;
		if (is_wanted(stream->perf, record.type)) {
			record.data = data + at;
			record.offset = stream->inner ? stream->offset : stream->offset + at;
			r = take_record(streams, stream, &record);
			if (r < 0)
				break;
		}
		at += record.size;
		if (stream->behind > 0)
			break;
	}
	stream->perf->summary.records += records;
	if (r == -EBADMSG && !stream->inner)
		stream->offset += at;
	return r < 0 ? r : (ptrdiff_t)at;
}

/* Take whole records, and the bytes behind them, from decompressed data. Returns as scan_records(). */
static ptrdiff_t scan_inner(struct streams *streams, const uint8_t *data, size_t len)
{
	struct stream *stream = &streams->inner;
	size_t taken = 0;

	for (;;) {
		ptrdiff_t n;

		if (stream->behind >= len - taken) {
			stream->behind -= len - taken;
			return (ptrdiff_t)len;
		}
		taken += (size_t)stream->behind;
		stream->behind = 0;
		n = scan_records(streams, stream, data + taken, len - taken);
		if (n < 0)
			return n;
		taken += (size_t)n;
		if (stream->behind == 0)
			return (ptrdiff_t)taken;
	}
}

/* Decompress, and scan what comes out. Returns 0, -EBADMSG for damaged data, -EFBIG for data that grows too much, or an error. */
static int inflate_records(struct streams *streams, const uint8_t *data, size_t len)
{
	ZSTD_inBuffer in = { .src = data, .size = len };
	ZSTD_outBuffer out;

	if (!streams->zstd) {
		streams->zstd = ZSTD_createDStream();
		streams->buffer = malloc(ROOM);
	}
	if (!streams->zstd || !streams->buffer)
		return -ENOMEM;
	streams->packed += len;
	do {
		ptrdiff_t taken;
		size_t code;

		out = (ZSTD_outBuffer){ .dst = streams->buffer, .size = ROOM, .pos = streams->len };
		code = ZSTD_decompressStream(streams->zstd, &out, &in);
		if (ZSTD_isError(code))
			return ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
		streams->unpacked += out.pos - streams->len;
		if (streams->unpacked > GROWTH_START && streams->unpacked / GROWTH_MAX > streams->packed)
			return -EFBIG;
		taken = scan_inner(streams, streams->buffer, out.pos);
		if (taken < 0)
			return (int)taken;
		streams->len = out.pos - (size_t)taken;
		memmove(streams->buffer, streams->buffer + taken, streams->len);
	} while (in.pos < in.size || out.pos == out.size);
	return 0;
}

static int scan_compressed(struct streams *streams, const struct bid_perf_event *record)
{
	size_t begin = record->type == BID_PERF_EVENT_COMPRESSED ? COMPRESSED_DATA : COMPRESSED2_DATA;
	struct bid_perf *perf = streams->outer.perf;
	size_t len;
	int r;

	perf->summary.compressed = true;
	if (streams->broken)
		return 0;
	if (record->size < begin) {
		bid_perf_damage(perf, "a compressed record without data", record->offset);
		return 0;
	}
	len = record->size - begin;
	if (record->type == BID_PERF_EVENT_COMPRESSED2 && bid_load64(perf->big, record->data + COMPRESSED2_SIZE) < len)
		len = (size_t)bid_load64(perf->big, record->data + COMPRESSED2_SIZE);

	streams->inner.offset = record->offset;
	r = inflate_records(streams, record->data + begin, len);
	if (r != -EBADMSG && r != -EFBIG)
		return r;
	bid_perf_damage(perf, r == -EFBIG ? "compressed data that grows beyond reason" : "compressed data", record->offset);
	streams->broken = true;
	return 0;
}

/* Take the next records of @input, at most up to @end. Returns 1, 0 if there are no more, or a negative errno. */
static int take_records(struct streams *streams, struct bid_input *input, uint64_t end)
{
	struct stream *stream = &streams->outer;
	struct bid_perf *perf = stream->perf;
	const uint8_t *data;
	ssize_t have = bid_input_look(input, BID_PERF_EVENT_MAX, &data);
	size_t len;
	ptrdiff_t n;

	if (have < 0)
		return (int)have;
	len = (uint64_t)have < end - input->offset ? (size_t)have : (size_t)(end - input->offset);
	if (len == 0) {
		perf->summary.cut |= end != UINT64_MAX && input->offset < end;
		return 0;
	}
	stream->offset = input->offset;
	n = scan_records(streams, stream, data, len);
	if (n == -EBADMSG) {
		bid_perf_damage(perf, "a record", stream->offset);
		return 0;
	}
	if (n < 0)
		return (int)n;
	bid_input_take(input, (size_t)n);
	if (n > 0 && stream->behind == 0)
		return 1;
	if (n == 0) {
		/* the record exceeds the rest of the file or of the section */
		if (len == (size_t)have)
			perf->summary.cut = true;
		else
			bid_perf_damage(perf, "a record that is longer than the data", input->offset);
		return 0;
	}
	if (stream->behind > end - input->offset) {
		bid_perf_damage(perf, "a record with more behind it than there is data", input->offset);
		return 0;
	}
	n = bid_input_go(input, input->offset + stream->behind);
	stream->behind = 0;
	if (n == -ENODATA)
		perf->summary.cut = true;
	return n == 0 ? 1 : n == -ENODATA ? 0 : (int)n;
}

int bid_stream_read(struct bid_perf *perf, struct bid_input *input, uint64_t end)
{
	bid_cleanup(streams_release) struct streams streams = {
		.outer = { .perf = perf },
		.inner = { .perf = perf, .inner = true },
	};
	int r;

	do {
		r = input->offset < end ? take_records(&streams, input, end) : 0;
	} while (r > 0);
	if (r == 0 && !streams.broken && (streams.len > 0 || streams.inner.behind > 0))
		perf->summary.cut = true;
	return r;
}
