/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of reading a recording, and the layers of the reader, from the outermost to the innermost. */
#ifndef BID_PERFDATA_RECORDING_H
#define BID_PERFDATA_RECORDING_H

#include <sys/types.h>

#include "perfdata/dsos.h"
#include "perfdata/input.h"
#include "perfdata/samples.h"

/* The largest record: its size is a u16. */
#define BID_PERF_EVENT_MAX  65535u
#define BID_PERF_EVENT_HEAD 8u

/* Types of records (linux/perf_event.h, and from 64 on perf's lib/perf/include/perf/event.h). */
enum {
	BID_PERF_EVENT_MMAP = 1,
	BID_PERF_EVENT_FORK = 7,
	BID_PERF_EVENT_SAMPLE = 9,
	BID_PERF_EVENT_MMAP2 = 10,
	BID_PERF_EVENT_ATTR = 64,
	BID_PERF_EVENT_TRACING_DATA = 66,
	BID_PERF_EVENT_BUILD_ID = 67,
	BID_PERF_EVENT_AUXTRACE = 71,
	BID_PERF_EVENT_FEATURE = 80,
	BID_PERF_EVENT_COMPRESSED = 81,
	BID_PERF_EVENT_COMPRESSED2 = 83,
};

/* offset of the sample type in struct perf_event_attr (linux/perf_event.h) */
#define BID_ATTR_TYPE 24u

/* Sections behind the data (perf, util/header.h). */
enum { BID_FEATURE_BUILD_ID = 2, BID_FEATURE_HOSTNAME = 3 };

struct bid_perf {
	bool big; /* the recorder's byte order */
	struct bid_dsos dsos;
	struct bid_samples samples;
	struct bid_perfdata_summary summary;
};

/* Count a damaged part, and report the first one. @what is static. */
void bid_perf_damage(struct bid_perf *perf, const char *what, uint64_t offset);

/* The head of a record. */
struct bid_perf_event {
	uint32_t type;
	uint16_t misc;
	uint16_t size; /* size of the whole record, BID_PERF_EVENT_HEAD at least */
	const uint8_t *data; /* beginning of the record */
	uint64_t offset; /* in the file, for messages */
};

/*
 * perf_event.c: read a record of type MMAP, MMAP2 or BUILD_ID. Returns 0 even for a malformed record, which it counts; or as
 * bid_dsos_add().
 */
int bid_perf_event_mapping(struct bid_perf *perf, const struct bid_perf_event *record);
int bid_perf_event_build_id(struct bid_perf *perf, const struct bid_perf_event *record);

/*
 * perf_event.c: read a record of type ATTR, FORK or SAMPLE, if samples are counted. Skips a record that is too short. Returns 0
 * or -ENOMEM.
 */
int bid_perf_event_sampled(struct bid_perf *perf, const struct bid_perf_event *record);

/*
 * perf_event.c: read the entries of a table of build-ids that are whole among the @len bytes from @offset. Returns their size, or
 * an error as the functions above.
 */
ssize_t bid_perf_event_table(struct bid_perf *perf, const uint8_t *data, size_t len, uint64_t offset);

#define BID_PERF_TABLE_DAMAGE "an entry of the table of build-ids"

/*
 * stream.c: read the records from the offset of @input to @end, UINT64_MAX for the end of the file. Truncation and damage end the
 * reading, and are reported. Returns 0, or as read(2), -ENOMEM, -E2BIG.
 */
int bid_stream_read(struct bid_perf *perf, struct bid_input *input, uint64_t end);

/* file_header.c: read a file with perf's header at the beginning of @input. Returns 0, -EINVAL, or as bid_stream_read(). */
int bid_features_read(struct bid_perf *perf, struct bid_input *input);

#endif
