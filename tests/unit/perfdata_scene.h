/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings made by hand, in either byte order. Whatever fails here fails the test. */
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
	ATTRS = 16, /* too short for one */
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
	size_t record; /* where the one that is being written begins */
};

void recording_release(struct recording *recording);

#define auto_recording __attribute__((cleanup(recording_release))) struct recording

void put(struct recording *recording, const void *data, size_t len);
void put_number(struct recording *recording, uint64_t value, size_t size);

/* Overwrite a u64 that is there already. */
void set64(struct recording *recording, size_t at, uint64_t value);

void begin(struct recording *recording, uint32_t type, uint16_t misc);
void end(struct recording *recording);

/* A sample of @n words that are nobody's. */
void put_sample(struct recording *recording, size_t n);
void put_mmap(struct recording *recording, uint16_t misc, const char *name);
/* @id is hex, or NULL for an inode. */
void put_mmap2(struct recording *recording, uint16_t misc, const char *id, const char *name);
/* The same where a process has it; above it is at 0, of no length. */
struct place {
	uint32_t pid;
	uint64_t start, len;
};
void put_mmap2_at(struct recording *recording, uint16_t misc, const char *id, const char *name, const struct place *place);
/* @type is 0 in a table. With SIZED in @misc the length is told. */
void put_build_id(struct recording *recording, uint32_t type, uint16_t misc, const char *id, const char *name);
/* The oldest kind: without a pid. */
void put_old_build_id(struct recording *recording, uint16_t misc, const char *id, const char *name);

/* @parts records of type COMPRESSED or COMPRESSED2 with what is in @content, cut anywhere. */
void put_compressed(struct recording *recording, uint32_t type, const struct recording *content, size_t parts);

/* A header of @size bytes and attributes; to be ended by finish(), or without that an interrupted recording. */
void put_header(struct recording *recording, size_t size);
void put_pipe_header(struct recording *recording);
/* What was put since the header is the data; behind it a table, if @table is not NULL. */
void finish(struct recording *recording, const struct recording *table);

/*
 * What was read, as text: a line "MODE ID PATH" for each, with "-" for no id and "?" behind an id without a size, and in front of
 * those with samples their number.
 */
struct reading {
	char *text; /* owned */
	int r;
	struct bid_perfdata_summary summary;
};

void reading_release(struct reading *reading);

#define auto_reading __attribute__((cleanup(reading_release))) struct reading

struct reading read_recording(const struct recording *recording);
struct reading read_through_pipe(const struct recording *recording);
/* The same with flags. */
struct reading read_with(const struct recording *recording, unsigned flags);
struct reading read_through_pipe_with(const struct recording *recording, unsigned flags);
struct reading read_path(const char *path);

/* A table of build-ids in which each form stands once, and what is read of it. */
void put_table(struct recording *table);
#define TABLE_TEXT \
	"user " ID_8 " /bin/short\n" \
	"user " ID_C "? /bin/unsized\n" \
	"kernel " ID_A " [kernel.kallsyms]\n" \
	"user " ID_B " [vdso]\n"

/* @n samples and mappings of up to 300 files, and some records with bytes behind them. */
void put_content(struct recording *content, size_t n);

/* Whole and undamaged, with this text. */
void assert_read(const struct reading *reading, const char *text);
/* The same from a file and through a pipe. */
void assert_reads(const struct recording *recording, const char *text);

/* Every test is run for both orders. */
bool is_big(void **state);

#define IN_BOTH(function) cmocka_unit_test_prestate(function, &little), cmocka_unit_test_prestate(function, &big)

#endif
