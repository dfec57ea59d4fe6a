/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is known while a recording is read, and the layers of reading it, from the outermost to the innermost. */
#ifndef BID_PERFDATA_PERF_H
#define BID_PERFDATA_PERF_H

#include <sys/types.h>

#include "perfdata/dsos.h"
#include "perfdata/input.h"
#include "perfdata/samples.h"

/* The largest record: its size is a u16. */
#define BID_RECORD_MAX	65535u
#define BID_RECORD_HEAD 8u

/* Types of records (linux/perf_event.h, and from 64 on perf's lib/perf/include/perf/event.h). */
enum {
	BID_RECORD_MMAP = 1,
	BID_RECORD_FORK = 7,
	BID_RECORD_SAMPLE = 9,
	BID_RECORD_MMAP2 = 10,
	BID_RECORD_ATTR = 64,
	BID_RECORD_TRACING_DATA = 66,
	BID_RECORD_BUILD_ID = 67,
	BID_RECORD_AUXTRACE = 71,
	BID_RECORD_FEATURE = 80,
	BID_RECORD_COMPRESSED = 81,
	BID_RECORD_COMPRESSED2 = 83,
};

/* struct perf_event_attr (linux/perf_event.h): where the type of its samples is in it */
#define BID_ATTR_TYPE 24u

/* Sections behind the data (perf, util/header.h). */
enum { BID_FEATURE_BUILD_ID = 2, BID_FEATURE_HOSTNAME = 3 };

struct bid_perf {
	bool big; /* the recorder's byte order */
	struct bid_dsos dsos;
	struct bid_samples samples;
	struct bid_perfdata_summary summary;
};

/* Count a part that makes no sense; the first one is told. @what is static. */
void bid_perf_damage(struct bid_perf *perf, const char *what, uint64_t offset);

/* The head of a record. */
struct bid_record {
	uint32_t type;
	uint16_t misc;
	uint16_t size; /* of the whole, BID_RECORD_HEAD at least */
	const uint8_t *data; /* where it begins */
	uint64_t offset; /* in the file, for messages */
};

/* mode.c: as perf's cpumode, the low three bits of misc, has it. */
enum bid_perfdata_mode bid_perf_mode(uint16_t misc);

/*
 * record.c: learn what a record of type MMAP, MMAP2 or BUILD_ID says. Returns 0 even if it makes no sense, which is counted; or
 * as bid_dsos_add().
 */
int bid_record_mapping(struct bid_perf *perf, const struct bid_record *record);
int bid_record_build_id(struct bid_perf *perf, const struct bid_record *record);

/*
 * record.c: learn what a record of type ATTR, FORK or SAMPLE says, if samples are counted. What is too short is left out. Returns 0
 * or -ENOMEM.
 */
int bid_record_sampled(struct bid_perf *perf, const struct bid_record *record);

/*
 * record.c: learn what the @len bytes of a table of build-ids say, which came from @offset; in one that is @cut off, half an entry
 * is no damage. Returns as the ones above.
 */
int bid_record_table(struct bid_perf *perf, const uint8_t *data, size_t len, uint64_t offset, bool cut);

/*
 * stream.c: read the records from where @input is to @end, UINT64_MAX for the end of the file. What is cut off or makes no sense
 * ends it and is reported. Returns 0, or as read(2), -ENOMEM, -E2BIG.
 */
int bid_stream_read(struct bid_perf *perf, struct bid_input *input, uint64_t end);

/* features.c: read a file that begins with perf's header at the beginning of @input. Returns 0, -EINVAL, or as the one above. */
int bid_features_read(struct bid_perf *perf, struct bid_input *input);

#endif
