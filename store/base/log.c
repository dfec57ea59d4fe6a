// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

enum { MESSAGE_MAX = 2048 };

static struct {
	const char *name;
	enum bid_log_level level;
	bool syslog;
	_Atomic bool relayed; /* by @relay; the gc thread may log while the mount ends */
	_Atomic int relay; /* a pipe; borrowed; -1 for nowhere */
	bid_log_error_fn on_error; /* may be NULL */
	void *user; /* of @on_error */
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

void bid_log_to_relay(int fd)
{
	if (state.syslog)
		closelog();
	state.relayed = state.syslog;
	state.relay = fd;
}

/* A line is its priority, one digit, and the message, cut to what a pipe takes at once. */
static void write_line(int priority, const char *prefix, const char *message)
{
	char line[PIPE_BUF];
	int n = snprintf(line, sizeof(line), "%d%s%s\n", priority, prefix, message);

	if (n >= (int)sizeof(line)) {
		n = (int)sizeof(line);
		line[n - 1] = '\n';
	}
	/* no way to report this failure */
	if (state.relay >= 0 && write(state.relay, line, (size_t)n) < 0)
		errno = 0;
}

void bid_log_relay(pid_t pid, char *line)
{
	char name[64];

	line[strcspn(line, "\n")] = '\0';
	if (line[0] < '0' || line[0] > '7')
		return;
	snprintf(name, sizeof(name), "%s[%d]", state.name, (int)pid);
	openlog(name, 0, LOG_DAEMON);
	syslog(line[0] - '0', "%s", line + 1);
	openlog(state.name, LOG_PID, LOG_DAEMON);
}

void bid_log_on_error(bid_log_error_fn fn, void *user)
{
	state.on_error = fn;
	state.user = user;
}

/* Write one message to where messages go. */
static void write_message(enum bid_log_level level, const char *message)
{
	/* names come from outside: one message is one line */
	bid_auto_free char *shown = bid_escape(message, BID_ESCAPE_TEXT);

	if (state.relayed)
		write_line(levels[level].priority, levels[level].prefix, shown ? shown : strerror(ENOMEM));
	else if (state.syslog)
		syslog(levels[level].priority, "%s%s", levels[level].prefix, shown ? shown : strerror(ENOMEM));
	else
		fprintf(stderr, "%s: %s%s\n", state.name, levels[level].prefix, shown ? shown : strerror(ENOMEM));
}

/* Does @message have @subject in quotes? */
static bool has_subject(const char *message, const char *subject)
{
	size_t len = strlen(subject);

	for (const char *at = message; *at && (at = strstr(at, subject)); at++)
		if (at > message && at[-1] == '\'' && at[len] == '\'')
			return true;
	return false;
}

void bid_log_about(enum bid_log_level level, const char *subject, int error, const char *format, ...)
{
	int saved = errno;
	char message[MESSAGE_MAX];
	va_list arguments;
	size_t len;

	if (level > state.level)
		return;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	if (level == BID_LOG_ERROR && state.on_error)
		state.on_error(state.user, subject, error, message);
	len = strlen(message);
	if (subject && !has_subject(message, subject))
		snprintf(message + len, sizeof(message) - len, ": '%s'", subject);
	write_message(level, message);
	errno = saved;
}
