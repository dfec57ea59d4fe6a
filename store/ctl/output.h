/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output of bidctl: for people on a terminal, for scripts in a pipe, as JSON. */
#ifndef BID_CTL_OUTPUT_H
#define BID_CTL_OUTPUT_H

#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "api/broker.h"

#include "ctl/ctl.h"

bool ctl_is_terminal(FILE *file);

/* Well-known environment variables; --color, --progress and --quiet set them. */
#define CTL_COLOUR_ALWAYS   "CLICOLOR_FORCE"
#define CTL_COLOUR_NEVER    "NO_COLOR"
#define CTL_PROGRESS_ALWAYS "DEBUGINFOD_PROGRESS"
#define CTL_PROGRESS_NEVER  "BIDCTL_NO_PROGRESS"

enum ctl_colour { CTL_PLAIN, CTL_BOLD, CTL_DIM, CTL_GREEN, CTL_RED };

/* Return the sequence that begins @colour on @file. Returns "" with NO_COLOR, and without a terminal or CLICOLOR_FORCE. Static. */
const char *ctl_colour(FILE *file, enum ctl_colour colour);

/* Print @text on one line, with bid_escape(). */
void ctl_print_text(FILE *file, const char *text);

/* Print "elf,debuginfo" for a bit mask of kinds, or "-". */
void ctl_print_kinds(FILE *file, unsigned kinds);

/* Print "label     " before a value, in bold on a terminal. */
void ctl_print_label(const char *label);

#define CTL_SIZE_MAX 16

/* Format @bytes in about three digits and a binary unit: "0 B", "4.2 KiB", "117 MiB". Returns @buf. */
const char *ctl_format_size(uint64_t bytes, char buf[static CTL_SIZE_MAX]);

#define CTL_TIME_MAX 32

/* Format local time as "2026-01-31 17:05:00", or "-" for 0. Returns @buf. */
const char *ctl_format_time(time_t when, char buf[static CTL_TIME_MAX]);

enum ctl_field_type {
	CTL_AS_TEXT,
	CTL_AS_STATE,
	CTL_AS_ID,
	CTL_AS_KIND,
	CTL_AS_KINDS,
	CTL_AS_NUMBER,
	CTL_AS_SIZE,
	CTL_AS_TIME,
	CTL_AS_BOOL,
	CTL_AS_JSON
};

/* One value of a row or of the totals: a key with --json, else a column or a part of the summary. */
struct ctl_field {
	const char *key; /* NULL behind the last one */
	enum ctl_field_type type;
	int width; /* width of the column on a terminal, negative for numbers; CTL_HIDDEN: with --json alone */
	union {
		const char *text; /* any bytes; NULL or "" is null */
		const struct bid_id *id; /* NULL or an empty one is null */
		uint64_t number; /* CTL_NONE, no kind and no time are null */
		json_t *json; /* owned by the call; NULL is null */
	};
};

#define CTL_HIDDEN INT_MAX
#define CTL_NONE   UINT64_MAX

#define CTL_FIELD(name, form, columns, member) \
	{ \
		.key = name, .type = form, .width = columns, member \
	}
#define CTL_TEXT(name, columns, value) CTL_FIELD(name, CTL_AS_TEXT, columns, .text = value)
/* A change that --dry-run only announces: "would be evicted" for people. */
#define CTL_STATE(name, columns, value) CTL_FIELD(name, CTL_AS_STATE, columns, .text = value)
#define CTL_ID(name, columns, value)	CTL_FIELD(name, CTL_AS_ID, columns, .id = value)
#define CTL_KIND(name, columns, value)	CTL_FIELD(name, CTL_AS_KIND, columns, .number = value)
/* A bit mask of kinds. */
#define CTL_KINDS(name, columns, value)	 CTL_FIELD(name, CTL_AS_KINDS, columns, .number = value)
#define CTL_NUMBER(name, columns, value) CTL_FIELD(name, CTL_AS_NUMBER, columns, .number = value)
#define CTL_SIZE(name, columns, value)	 CTL_FIELD(name, CTL_AS_SIZE, columns, .number = value)
#define CTL_TIME(name, columns, value)	 CTL_FIELD(name, CTL_AS_TIME, columns, .number = (uint64_t)(value))
#define CTL_BOOL(name, value)		 CTL_FIELD(name, CTL_AS_BOOL, CTL_HIDDEN, .number = value)
#define CTL_JSON(name, value)		 CTL_FIELD(name, CTL_AS_JSON, CTL_HIDDEN, .json = value)

#define CTL_SCHEMA "bidfs.v1" /* output format of --json: changes with the meaning or the name of a key */

/*
 * The JSON value of a command, {"schema", "command", "result", "totals", "errors"}: docs/JSON.md. main() begins it, collects the
 * errors and ends it; a command adds rows and totals.
 */
struct ctl_envelope {
	const char *command; /* borrowed; NULL for none */
	bool stream; /* an envelope for each row, on a line of its own; set by a command without an end */
	bool begun; /* standard output has the beginning */
	bool failed; /* out of memory: something is missing */
	size_t n; /* rows on standard output */
	bool aligned; /* columns for a terminal; set with the first row, or by a command that scripts read as JSON alone */
	const char *heading; /* without --json: first key of the heading above the last row; NULL before */
	json_t *totals; /* owned; NULL for none */
	json_t *errors; /* owned; NULL for none */
	pthread_mutex_t lock; /* guards @errors: any thread may report one */
};

/* Begin, and collect the errors from now on. */
void ctl_envelope_begin(struct ctl_envelope *envelope);

/* Write the rest, and stop collecting. Returns 0 or -ENOMEM. */
int ctl_envelope_end(struct ctl_envelope *envelope);

/*
 * Write the next row: with --json of "result", else columns, aligned on a terminal, separated by tabs in a pipe. Only one row is in
 * memory. Returns 0 or -ENOMEM.
 */
int ctl_row_of(const struct ctl *ctl, const struct ctl_field *fields);
#define ctl_row(ctl, ...) ctl_row_of(ctl, (const struct ctl_field[]){ __VA_ARGS__, { .key = NULL } })

/* Write a row of "result" with keys of its own, and drop it. With --json alone. */
int ctl_row_json(const struct ctl *ctl, json_t *row);

/* Set "totals"; without --json, and unless --quiet, print "KEY VALUE, ..." on standard error. */
void ctl_totals_of(const struct ctl *ctl, const struct ctl_field *fields);
#define ctl_totals(ctl, ...) ctl_totals_of(ctl, (const struct ctl_field[]){ __VA_ARGS__, { .key = NULL } })

/* Return the build-id as a JSON string, or null for an empty one. */
json_t *ctl_json_id(const struct bid_id *id);

/*
 * Status line on standard error, redrawn in place. Without a terminal the default is no output; DEBUGINFOD_PROGRESS
 * (debuginfod_find_debuginfo(3)) asks for a new line each second. Start with a zeroed struct.
 */
struct ctl_progress {
	bool drawn;
	int64_t next_ms; /* clock at which the next line is due, without a terminal */
	int64_t begun_ms; /* clock at the first byte, or at the last drawing of the text */
};

bool ctl_progress_wanted(void);

/* Does standard error have a terminal for a progress line, and does the user want one? */
bool ctl_progress_is_drawn(void);

/*
 * Draw a text, the rate of @received bytes, and a bar for @part of @whole. Before the first byte there is no rate, and for a @whole
 * of 0 no bar.
 */
void ctl_progress_draw(struct ctl_progress *progress, uint64_t received, uint64_t part, uint64_t whole, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Draw any text in that line; at most ten times a second. */
void ctl_progress_text(struct ctl_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Erase the line. */
void ctl_progress_clear(struct ctl_progress *progress);

#endif
