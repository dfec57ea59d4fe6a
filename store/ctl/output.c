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

/* main() reports a write error, by checking the stream at the end. */
static int write_json(json_t *json, size_t flags)
{
	bid_auto_free char *text = json ? bid_json_dump(json, flags) : NULL;

	json_decref(json);
	if (text)
		fputs(text, stdout);
	return text ? 0 : -ENOMEM;
}

static int print_json(json_t *json, size_t flags)
{
	int r = write_json(json, flags);

	putchar('\n');
	return r;
}

int ctl_print_json(json_t *json)
{
	return print_json(json, JSON_INDENT(2));
}

int ctl_print_json_line(json_t *json)
{
	return print_json(json, JSON_COMPACT);
}

int ctl_array_add(struct ctl_array *array, json_t *element)
{
	fputs(array->n++ ? ",\n" : "[\n", stdout);
	return write_json(element, JSON_COMPACT);
}

void ctl_array_end(const struct ctl_array *array)
{
	fputs(array->n ? "\n]\n" : "[]\n", stdout);
}
