/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Handmade recordings in either byte order. Every failure here fails the test. */
#ifndef BID_TESTS_PERFDATA_SCENE_H
#define BID_TESTS_PERFDATA_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/perfdata.h"

enum {
	KERNEL = 1,
	USER = 2,
	GUEST_KERNEL = 4,
	DATA = 1 << 13,
	WITH_ID = 1 << 14,
	SIZED = 1 << 15,
	MMAP = 1,
	FORK = 7,
	SAMPLE = 9,
	MMAP2 = 10,
	ATTR = 64,
	TRACING_DATA = 66,
	BUILD_ID = 67,
	AUXTRACE = 71,
	FEATURE = 80,
	COMPRESSED = 81,
	COMPRESSED2 = 83,
	HEADER = 104,
	ATTRS = 16, /* size of the attributes, too short for one */
};

#define ID_A	 "aa00112233445566778899aabbccddeeff001122"
#define ID_B	 "bb00112233445566778899aabbccddeeff001122"
#define ID_C	 "cc00112233445566778899aabbccddeeff001122"
#define ID_8	 "0123456789abcdef"
#define ID_8_PAD "0123456789abcdef000000000000000000000000"

struct recording {
	bool big;
	uint8_t *data; /* owned */
	size_t len, room;
	size_t record; /* begin of the record in progress */
};

void recording_release(struct recording *recording);

#define auto_recording __attribute__((cleanup(recording_release))) struct recording

void put(struct recording *recording, const void *data, size_t len);
void put_number(struct recording *recording, uint64_t value, size_t size);

/* Overwrite an existing u64. */
void set64(struct recording *recording, size_t at, uint64_t value);

void begin(struct recording *recording, uint32_t type, uint16_t misc);
void end(struct recording *recording);

/* Put a sample of @n words that belong to no file. */
void put_sample(struct recording *recording, size_t n);
void put_mmap(struct recording *recording, uint16_t misc, const char *name);
/* @id is hex, or NULL for an inode. */
void put_mmap2(struct recording *recording, uint16_t misc, const char *id, const char *name);
/* Address of a mapping in a process. put_mmap2() has address and length 0. */
struct place {
	uint32_t pid;
	uint64_t start, len;
};
void put_mmap2_at(struct recording *recording, uint16_t misc, const char *id, const char *name, const struct place *place);
/* @type is 0 in a table. SIZED in @misc adds the length of the id. */
void put_build_id(struct recording *recording, uint32_t type, uint16_t misc, const char *id, const char *name);

/* Put @parts records of type COMPRESSED or COMPRESSED2 with @content, cut at any place. */
void put_compressed(struct recording *recording, uint32_t type, const struct recording *content, size_t parts);

/* Put a header of @size bytes, and attributes. Without finish() the recording is an interrupted one. */
void put_header(struct recording *recording, size_t size);
void put_pipe_header(struct recording *recording);
/* End the data, which began behind the header, and append a table unless @table is NULL. */
void finish(struct recording *recording, const struct recording *table);

/*
 * Builds that were read, as text: a line "MODE ID PATH" for each, with "-" for no id and "?" behind an id without a size. Builds
 * with samples begin with their number.
 */
struct perfdata_reading {
	char *text; /* owned */
	int r;
	struct bid_perfdata_summary summary;
};

void reading_release(struct perfdata_reading *reading);

#define auto_reading __attribute__((cleanup(reading_release))) struct perfdata_reading

struct perfdata_reading read_recording(const struct recording *recording);
struct perfdata_reading read_through_pipe(const struct recording *recording);
/* Read with flags. */
struct perfdata_reading read_with(const struct recording *recording, unsigned flags);
struct perfdata_reading read_through_pipe_with(const struct recording *recording, unsigned flags);
struct perfdata_reading read_path(const char *path);

/* Put a table of build-ids with each form once. TABLE_TEXT is its reading. */
void put_table(struct recording *table);
#define TABLE_TEXT \
	"user " ID_8 " /bin/short\n" \
	"user " ID_C "? /bin/unsized\n" \
	"kernel " ID_A " [kernel.kallsyms]\n" \
	"user " ID_B " [vdso]\n"

/* Put @n samples and mappings of up to 300 files, and some records with bytes behind them. */
void put_content(struct recording *content, size_t n);

/* Check a complete, undamaged reading against @text. */
void assert_read(const struct perfdata_reading *reading, const char *text);
/* Check both readings: from a file and through a pipe. */
void assert_reads(const struct recording *recording, const char *text);

/* Is the byte order big? Every test runs with both. */
bool is_big(void **state);

#define IN_BOTH(function) cmocka_unit_test_prestate(function, &little), cmocka_unit_test_prestate(function, &big)

#endif
