/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages: lower case, one line, the subject in quotes. The code with the context logs an error, once. */
#ifndef BID_BASE_LOG_H
#define BID_BASE_LOG_H

#include <sys/types.h>

enum bid_log_level {
	BID_LOG_ERROR,
	BID_LOG_WARNING,
	BID_LOG_INFO,
	BID_LOG_DEBUG,
};

/* Set the program @name (kept, not copied) and the lowest @level of messages (default BID_LOG_WARNING). */
void bid_log_init(const char *name, enum bid_log_level level);

/* Send further messages to syslog(3) instead of standard error, for a daemon. */
void bid_log_to_syslog(void);

/*
 * Where messages go to syslog(3), write them to the pipe @fd instead, from here on, a line each, for another process that hands
 * them to bid_log_relay(). They are dropped if @fd is -1. Before other threads are started.
 */
void bid_log_to_relay(int fd);

/* Log @line, which @pid wrote after bid_log_to_relay(), to syslog(3). */
void bid_log_relay(pid_t pid, char *line);

/*
 * Log "TEXT: 'SUBJECT'", or TEXT alone if it has the subject in quotes or @subject is NULL. The subject and @error, a negative
 * errno or 0, are for a program that also reports its errors in another form.
 */
void bid_log_about(enum bid_log_level level, const char *subject, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * Call @fn for each message of the level BID_LOG_ERROR, in its thread. @subject is NULL and @error 0 for a message of bid_error(),
 * whose @text is the whole message.
 */
typedef void (*bid_log_error_fn)(void *user, const char *subject, int error, const char *text);
void bid_log_on_error(bid_log_error_fn fn, void *user);

#define bid_error(...)	 bid_log_about(BID_LOG_ERROR, NULL, 0, __VA_ARGS__)
#define bid_warning(...) bid_log_about(BID_LOG_WARNING, NULL, 0, __VA_ARGS__)
#define bid_info(...)	 bid_log_about(BID_LOG_INFO, NULL, 0, __VA_ARGS__)
#define bid_debug(...)	 bid_log_about(BID_LOG_DEBUG, NULL, 0, __VA_ARGS__)

#define bid_error_about(subject, error, ...) bid_log_about(BID_LOG_ERROR, subject, error, __VA_ARGS__)

#endif
