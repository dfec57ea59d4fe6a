/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Circuit breaker of a server, or of a file system that may not respond; docs/SERVERS.md has its rules and times. After failures
 * it opens: it admits no request during a pause, and then one, the trial. An outage costs one connection per trial, however many
 * artifacts are requested. Pauses have a random part, so that clients do not return to a server together. A failure counts when it
 * ends: of eight requests that stall together, the fifth opens the breaker.
 *
 * Works on times that are passed in, without a clock, a lock or libcurl.
 */
#ifndef BID_BASE_BREAKER_H
#define BID_BASE_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define BID_BREAKER_PAUSE_MIN_MS 5000
#define BID_BREAKER_PAUSE_MAX_MS 300000
#define BID_BREAKER_FAILURES	 5

/* Health signal: what the end of a request shows about its server. */
enum bid_health {
	BID_HEALTH_NONE = 0, /* nothing: cancelled, or a local error */
	BID_HEALTH_HEALTHY, /* the server responded, if only with 404 */
	BID_HEALTH_BAD, /* a failure of a server that responds */
	BID_HEALTH_DEAD, /* no response */
};

struct bid_breaker {
	bool open; /* admits only the trial */
	bool in_trial; /* while open: the trial is in flight */
	unsigned failures; /* in a row */
	unsigned pauses; /* in a row */
	bool retry_after; /* the pause is that of Retry-After */
	int64_t until; /* end of the pause, in milliseconds of the monotonic clock */
	time_t until_wall; /* the same, for people */
	unsigned seed; /* of the jitter */
	char last_failure[128]; /* text of the last failure; "" after a success */
};

void bid_breaker_init(struct bid_breaker *breaker, unsigned seed);

/* Would a request be refused @now? */
bool bid_breaker_refuses(const struct bid_breaker *breaker, int64_t now);

/* May a request be sent @now? Sets @ret_trial to true for the trial, whose end the caller owes bid_breaker_note(). */
bool bid_breaker_admits(struct bid_breaker *breaker, int64_t now, bool *ret_trial);

/* Note the end of a request, or of the trial: health signal, Retry-After (0 for none), and the text of a failure. */
void bid_breaker_note(struct bid_breaker *breaker, int64_t now, bool trial, enum bid_health sign, int64_t retry_after_s,
		      const char *text);

/*
 * Close the breaker, because the trial gets a good response. From then on the trial is an ordinary request. The next failure opens
 * the breaker again, for the next longer pause.
 */
void bid_breaker_answered(struct bid_breaker *breaker);

/* Write "breaker open until 14:03:27: could not connect: ...", or another text while the trial is in flight. */
void bid_breaker_describe(const struct bid_breaker *breaker, char *buf, size_t size);

/* Seconds until the next trial, rounded up; 0 if the breaker is closed, or the trial in flight. */
unsigned bid_breaker_remaining_s(const struct bid_breaker *breaker, int64_t now);

#endif
