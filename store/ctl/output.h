/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How bidctl writes: for people on a terminal, for scripts in a pipe, as JSON. */
#ifndef BID_CTL_OUTPUT_H
#define BID_CTL_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "api/broker.h"

#include "ctl/ctl.h"

bool ctl_is_terminal(FILE *file);

/* Environment variables that users know; --color, --progress and --quiet set them. */
#define CTL_COLOUR_ALWAYS   "CLICOLOR_FORCE"
#define CTL_COLOUR_NEVER    "NO_COLOR"
#define CTL_PROGRESS_ALWAYS "DEBUGINFOD_PROGRESS"
#define CTL_PROGRESS_NEVER  "BIDCTL_NO_PROGRESS"

enum ctl_colour { CTL_PLAIN, CTL_BOLD, CTL_DIM, CTL_GREEN, CTL_RED };

/* The sequence that begins @colour on @file; "" if that is no terminal, unless CLICOLOR_FORCE is set, or if NO_COLOR is. Static. */
const char *ctl_colour(FILE *file, enum ctl_colour colour);

/* Write @text on one line, whatever is in it: bid_escape(). */
void ctl_print_text(FILE *file, const char *text);

/* Print a part of the summary on standard error, for people: nothing with --json or --quiet. */
void ctl_summary(const struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "label     " in front of a value, in bold on a terminal. */
void ctl_print_label(const char *label);

#define CTL_SIZE_MAX 16

/* @bytes in three digits or so and a binary unit: "0 B", "4.2 KiB", "117 MiB". Returns @buf. */
const char *ctl_format_size(uint64_t bytes, char buf[static CTL_SIZE_MAX]);

#define CTL_TIME_MAX 32

/* Local time as "2026-01-31 17:05:00", or "-" for 0. Returns @buf. */
const char *ctl_format_time(time_t when, char buf[static CTL_TIME_MAX]);

/* A path or the like as a JSON string, whose bytes JSON may not know: each that is not UTF-8 becomes U+FFFD. NULL is null. */
json_t *ctl_json_text(const char *text);

/* Write @json on standard output, and drop it. Returns 0 or -ENOMEM. */
int ctl_print_json(json_t *json);

/* The same on one line, for a stream of them. */
int ctl_print_json_line(json_t *json);

/* An array on standard output of which only one element is in memory. Begin with a zeroed one. */
struct ctl_array {
	size_t n;
};

/* Write the next element, and drop it. Returns 0 or -ENOMEM. */
int ctl_array_add(struct ctl_array *array, json_t *element);

void ctl_array_end(const struct ctl_array *array);

/*
 * A line on standard error that is written over and over. If that is no terminal there is nothing at all, or with
 * DEBUGINFOD_PROGRESS (debuginfod_find_debuginfo(3)) a new line each second. Begin with a zeroed one.
 */
struct ctl_progress {
	bool drawn;
	int64_t next_ms; /* the clock when the next line is due, without a terminal */
	int64_t begun_ms; /* the clock when the first byte was seen, or the text drawn last */
};

bool ctl_progress_wanted(void);

/* Is there a terminal for a progress line, and is it wanted? */
bool ctl_progress_is_drawn(void);

void ctl_progress_draw(struct ctl_progress *progress, const struct bid_progress *state);

/* Of many artifacts: how far all of them are. */
struct ctl_progress_sum {
	size_t done, all;
	size_t under_way; /* downloads */
	uint64_t received; /* bytes, of those that are done, too */
};

void ctl_progress_draw_sum(struct ctl_progress *progress, const struct ctl_progress_sum *sum);
/* Any text in that line; ten times a second at most. */
void ctl_progress_text(struct ctl_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Take it away again. */
void ctl_progress_clear(struct ctl_progress *progress);

#endif
