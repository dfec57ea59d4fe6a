/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output of bidctl: for people on a terminal, for scripts in a pipe, as JSON. */
#ifndef BID_CTL_OUTPUT_H
#define BID_CTL_OUTPUT_H

#include <jansson.h>
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

/* Print a part of the summary on standard error, for people: nothing with --json or --quiet. */
void ctl_summary(const struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print "label     " before a value, in bold on a terminal. */
void ctl_print_label(const char *label);

#define CTL_SIZE_MAX 16

/* Format @bytes in about three digits and a binary unit: "0 B", "4.2 KiB", "117 MiB". Returns @buf. */
const char *ctl_format_size(uint64_t bytes, char buf[static CTL_SIZE_MAX]);

#define CTL_TIME_MAX 32

/* Format local time as "2026-01-31 17:05:00", or "-" for 0. Returns @buf. */
const char *ctl_format_time(time_t when, char buf[static CTL_TIME_MAX]);

/* Return a path or similar bytes as a JSON string. Each byte outside UTF-8 becomes U+FFFD; NULL becomes null. */
json_t *ctl_json_text(const char *text);

#define CTL_SCHEMA "bidfs.v1" /* output format of --json: changes with the meaning or the name of a key */

/*
 * The JSON value of a command, {"schema", "command", "result", "totals", "errors"}: docs/JSON.md. main() begins it, collects the
 * errors and ends it; a command adds rows and totals.
 */
struct ctl_envelope {
	const char *command; /* borrowed; NULL for none */
	bool stream; /* an envelope for each row, on a line of its own */
	bool begun; /* standard output has the beginning */
	bool failed; /* out of memory: something is missing */
	size_t n; /* rows on standard output */
	json_t *totals; /* owned; NULL for none */
	json_t *errors; /* owned; NULL for none */
	pthread_mutex_t lock; /* guards @errors: any thread may report one */
};

/* Begin, and collect the errors from now on. */
void ctl_envelope_begin(struct ctl_envelope *envelope);

/* Write the rest, and stop collecting. Returns 0 or -ENOMEM. */
int ctl_envelope_end(struct ctl_envelope *envelope);

/* Write the next row of "result" on standard output, and drop it: only one row is in memory. Returns 0 or -ENOMEM. */
int ctl_row(const struct ctl *ctl, json_t *row);

/* Set "totals". Takes @totals. */
void ctl_totals(const struct ctl *ctl, json_t *totals);

/* Write an envelope for each row from now on, for a command without an end. */
void ctl_stream(const struct ctl *ctl);

/* Return the build-id as a JSON string, or null for an empty one. */
json_t *ctl_json_id(const struct bid_id *id);

/* Return the name of the kind as a JSON string, or null for BID_KIND_NONE. */
json_t *ctl_json_kind(enum bid_kind kind);

/* Return the names of the kinds in the bit mask @kinds as an array. */
json_t *ctl_json_kinds(unsigned kinds);

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

void ctl_progress_draw(struct ctl_progress *progress, const struct bid_progress *state);

/* Progress of many artifacts together. */
struct ctl_progress_sum {
	size_t done, all;
	size_t under_way; /* running downloads */
	uint64_t received; /* bytes, including those of finished downloads */
};

void ctl_progress_draw_sum(struct ctl_progress *progress, const struct ctl_progress_sum *sum);
/* Draw any text in that line; at most ten times a second. */
void ctl_progress_text(struct ctl_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Erase the line. */
void ctl_progress_clear(struct ctl_progress *progress);

#endif
