// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/escape.h"

static struct {
	const char *name;
	enum bid_log_level level;
	bool syslog;
} state = { .name = "bid", .level = BID_LOG_WARNING };

static const struct {
	const char *prefix;
	int priority;
} levels[] = {
	[BID_LOG_ERROR] = { "error: ", LOG_ERR },
	[BID_LOG_WARNING] = { "warning: ", LOG_WARNING },
	[BID_LOG_INFO] = { "", LOG_INFO },
	[BID_LOG_DEBUG] = { "debug: ", LOG_DEBUG },
};

void bid_log_init(const char *name, enum bid_log_level level)
{
	state.name = name;
	state.level = level;
}

void bid_log_to_syslog(void)
{
	openlog(state.name, LOG_PID, LOG_DAEMON);
	state.syslog = true;
}

void bid_log(enum bid_log_level level, const char *format, ...)
{
	int saved = errno;
	bid_auto_free char *shown = NULL;
	char message[2048];
	va_list arguments;

	if (level > state.level)
		return;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);

	/* names come from outside: one message is one line */
	shown = bid_escape(message, BID_ESCAPE_TEXT);
	if (state.syslog)
		syslog(levels[level].priority, "%s%s", levels[level].prefix, shown ? shown : strerror(ENOMEM));
	else
		fprintf(stderr, "%s: %s%s\n", state.name, levels[level].prefix, shown ? shown : strerror(ENOMEM));
	errno = saved;
}
