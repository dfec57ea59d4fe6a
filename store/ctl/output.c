// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/log.h"

bool ctl_is_terminal(FILE *file)
{
	return isatty(fileno(file));
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

const char *ctl_colour(FILE *file, enum ctl_colour colour)
{
	static const char *const sequences[] = {
		[CTL_PLAIN] = "\033[0m",  [CTL_BOLD] = "\033[1m", [CTL_DIM] = "\033[2m",
		[CTL_GREEN] = "\033[32m", [CTL_RED] = "\033[31m",
	};
	const char *terminal = getenv("TERM");
	bool dumb = !ctl_is_terminal(file) || (terminal && strcmp(terminal, "dumb") == 0);

	return is_set(CTL_COLOUR_NEVER) || (dumb && !is_set(CTL_COLOUR_ALWAYS)) ? "" : sequences[colour];
}

bool ctl_progress_is_drawn(void)
{
	return ctl_is_terminal(stderr) && !is_set(CTL_PROGRESS_NEVER);
}

bool ctl_progress_wanted(void)
{
	return ctl_progress_is_drawn() || (is_set(CTL_PROGRESS_ALWAYS) && !is_set(CTL_PROGRESS_NEVER));
}

void ctl_print_text(FILE *file, const char *text)
{
	bid_auto_free char *shown = bid_escape(text, BID_ESCAPE_TEXT);

	fputs(shown ? shown : "?", file);
}

void ctl_summary(const struct ctl *ctl, const char *format, ...)
{
	va_list arguments;

	if (ctl->json || ctl->quiet)
		return;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
}

void ctl_print_label(const char *label)
{
	printf("%s%-11s%s", ctl_colour(stdout, CTL_BOLD), label, ctl_colour(stdout, CTL_PLAIN));
}

const char *ctl_format_size(uint64_t bytes, char buf[static CTL_SIZE_MAX])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	/* 1023.5 and more would print as 1024 of this unit */
	while (value >= 1023.5) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, CTL_SIZE_MAX, "%.*f %s", unit > 0 && value < 9.95 ? 1 : 0, value, units[unit]);
	return buf;
}

const char *ctl_format_time(time_t when, char buf[static CTL_TIME_MAX])
{
	struct tm local;

	if (when == 0 || !localtime_r(&when, &local) || strftime(buf, CTL_TIME_MAX, "%F %T", &local) == 0)
		snprintf(buf, CTL_TIME_MAX, "-");
	return buf;
}

json_t *ctl_json_text(const char *text)
{
	return bid_json_text(text);
}

json_t *ctl_json_id(const struct bid_id *id)
{
	char hex[BID_ID_HEX_MAX];

	return id->len ? json_string(bid_id_format(id, hex)) : json_null();
}

json_t *ctl_json_kind(enum bid_kind kind)
{
	return kind ? json_string(bid_kind_name(kind)) : json_null();
}

json_t *ctl_json_kinds(unsigned kinds)
{
	json_t *names = json_array();

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (kinds & 1U << kind)
			json_array_append_new(names, json_string(bid_kind_name((enum bid_kind)kind)));
	return names;
}

/* bid_log_error_fn */
static void collect_error(void *user, const char *subject, int error, const char *text)
{
	struct ctl_envelope *envelope = user;

	pthread_mutex_lock(&envelope->lock);
	if (!envelope->errors)
		envelope->errors = json_array();
	json_array_append_new(envelope->errors,
			      json_pack("{s:o, s:o, s:s?}", "subject", ctl_json_text(subject), "reason", ctl_json_text(text),
					"errno", error ? strerrorname_np(error < 0 ? -error : error) : NULL));
	pthread_mutex_unlock(&envelope->lock);
}

void ctl_envelope_begin(struct ctl_envelope *envelope)
{
	*envelope = (struct ctl_envelope){ .lock = PTHREAD_MUTEX_INITIALIZER };
	bid_log_on_error(collect_error, envelope);
}

/* Write @json, and drop it. main() reports a write error, by checking the stream at the end. */
static int write_json(json_t *json)
{
	bid_auto_free char *text = json ? bid_json_dump(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(json);
	fputs(text ? text : "null", stdout);
	return text ? 0 : -ENOMEM;
}

/* Begin the envelope, and the line of a row in it. */
static void open_result(struct ctl_envelope *envelope)
{
	if (!envelope->begun) {
		fputs("{\"schema\":\"" CTL_SCHEMA "\",\"command\":", stdout);
		write_json(ctl_json_text(envelope->command));
		fputs(",\"result\":[", stdout);
	}
	envelope->begun = true;
}

/* Write the end of an envelope. */
static void close_result(struct ctl_envelope *envelope)
{
	json_t *errors;
	int r = 0;

	open_result(envelope);
	pthread_mutex_lock(&envelope->lock);
	errors = bid_steal(envelope->errors);
	pthread_mutex_unlock(&envelope->lock);
	fputs(envelope->n > 0 && !envelope->stream ? "\n],\"totals\":" : "],\"totals\":", stdout);
	r = write_json(envelope->totals ? bid_steal(envelope->totals) : json_object());
	fputs(",\"errors\":", stdout);
	if (write_json(errors ? errors : json_array()) < 0 || r < 0)
		envelope->failed = true;
	fputs("}\n", stdout);
	envelope->begun = false;
	envelope->n = 0;
}

int ctl_row(const struct ctl *ctl, json_t *row)
{
	struct ctl_envelope *envelope = ctl->envelope;

	open_result(envelope);
	if (!envelope->stream)
		fputs(envelope->n > 0 ? ",\n" : "\n", stdout);
	envelope->n++;
	if (write_json(row) < 0)
		envelope->failed = true;
	if (envelope->stream)
		close_result(envelope);
	return envelope->failed ? -ENOMEM : 0;
}

void ctl_totals(const struct ctl *ctl, json_t *totals)
{
	ctl->envelope->failed |= !totals;
	ctl->envelope->totals = totals;
}

void ctl_stream(const struct ctl *ctl)
{
	if (ctl->envelope)
		ctl->envelope->stream = true;
}

int ctl_envelope_end(struct ctl_envelope *envelope)
{
	close_result(envelope);
	bid_log_on_error(NULL, NULL);
	return envelope->failed ? -ENOMEM : 0;
}
