// SPDX-License-Identifier: LGPL-2.1-or-later
/* The progress line of a download. */
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/output.h"

enum { BAR_MAX = 30, COLUMNS = 80, LINE_ROOM = 256, REDRAW_MS = 100 };

static void draw_bar(char *line, size_t size, uint64_t received, uint64_t total, int width)
{
	int filled = (int)((double)received / (double)total * width);
	size_t at = strlen(line);

	if (width < 4 || at + (size_t)width + 8 > size)
		return;
	line[at++] = ' ';
	line[at++] = '[';
	for (int i = 0; i < width; i++)
		line[at++] = i < filled ? '=' : i == filled ? '>' : ' ';
	line[at++] = ']';
	snprintf(line + at, size - at, "%4d%%", (int)(100.0 * (double)received / (double)total));
}

static int width_of_terminal(void)
{
	struct winsize window = { 0 };

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) < 0 || window.ws_col == 0)
		return COLUMNS;
	return window.ws_col < LINE_ROOM ? window.ws_col : LINE_ROOM - 1;
}

static void show_line(struct ctl_progress *progress, const char *line, int columns)
{
	int64_t now = bid_clock_ms();

	if (ctl_progress_is_drawn()) {
		/* a wrapped line cannot be erased */
		fprintf(stderr, "\r%.*s\033[K", columns - 1, line);
		fflush(stderr);
		progress->drawn = true;
	} else if (now >= progress->next_ms) {
		fprintf(stderr, "%s\n", line);
		progress->next_ms = now + 1000;
	}
}

/* Append ", 3.2 MiB/s" to @line, after enough time for a measurement. */
static void add_rate(struct ctl_progress *progress, char *line, size_t size, uint64_t received)
{
	int64_t now = bid_clock_ms();
	size_t at = strlen(line);
	char rate[CTL_SIZE_MAX];

	if (progress->begun_ms == 0)
		progress->begun_ms = now;
	if (now > progress->begun_ms + 500)
		snprintf(line + at, size - at, ", %s/s",
			 ctl_format_size(received * 1000 / (uint64_t)(now - progress->begun_ms), rate));
}

void ctl_progress_draw(struct ctl_progress *progress, uint64_t received, uint64_t part, uint64_t whole, const char *format, ...)
{
	char line[LINE_ROOM];
	int columns = width_of_terminal(), room;
	va_list arguments;

	if (!ctl_progress_wanted())
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (received > 0)
		add_rate(progress, line, sizeof(line), received);
	else
		progress->begun_ms = 0;
	room = columns - (int)strlen(line) - 9;
	if (part <= whole && whole > 0)
		draw_bar(line, sizeof(line), part, whole, room < BAR_MAX ? room : BAR_MAX);
	show_line(progress, line, columns);
}

void ctl_progress_text(struct ctl_progress *progress, const char *format, ...)
{
	int64_t now = bid_clock_ms();
	char line[LINE_ROOM];
	va_list arguments;

	if (!ctl_progress_is_drawn() || (progress->drawn && now - progress->begun_ms < REDRAW_MS))
		return;
	progress->begun_ms = now;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	show_line(progress, line, width_of_terminal());
}

void ctl_progress_clear(struct ctl_progress *progress)
{
	if (!progress->drawn)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->drawn = false;
}
