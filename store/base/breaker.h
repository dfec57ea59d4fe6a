/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether a server is asked, or a file system that may be gone. One that cannot be reached is left alone for a while, and then
 * gets a single request, the probe; so an outage costs one connection per probe, however many artifacts are wanted meanwhile. The
 * pauses are about
 *
 *   5 s, 10 s, 20 s, ... 5 min
 *
 * each longer by up to a half, so that clients who lost a server together do not come back to it together. The first pause begins
 *
 *   at once			when there is no connection to be had, or no answer on one, nor to others: each costs a whole limit.
 *				But the first artifact that gets none after others did may be one that takes long: that is
 *				of the next kind
 *   with the fifth in a row	when it answers, and not well: 5xx, 429, 401, what is no HTTP, a body that stalls or breaks off,
 *				a connection that breaks without an answer,
 *				or a file that is not what was asked for.
 *				They count as they end: of eight at once that stall, the fifth does it after the time of one
 *   as the server says		with a Retry-After that is too long to wait for; five minutes is the most that is granted
 *
 * A request that is cancelled before there is an answer goes on until there is; one at a time.
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

/* What the end of a request says of its server. */
enum bid_sign {
	BID_SIGN_NONE = 0, /* nothing: it was cancelled, or failed here */
	BID_SIGN_HEALTHY, /* it answered, if only with a no */
	BID_SIGN_BAD, /* it answered, and not well */
	BID_SIGN_DEAD, /* it did not answer */
};

struct bid_breaker {
	bool open; /* only the probe may be sent */
	bool probing; /* while open: it is on its way */
	unsigned failures; /* in a row */
	unsigned pauses; /* in a row */
	bool asked_for; /* the pause is one that the server asked for */
	int64_t until; /* while open, and not probing: when the next request is the probe, in milliseconds of the monotonic clock */
	time_t until_wall; /* the same, for people */
	unsigned seed; /* of the jitter */
	char trouble[128]; /* what the last failure was; "" after a success */
};

void bid_breaker_init(struct bid_breaker *breaker, unsigned seed);

/* May a request be sent @now? If it is the probe, @ret_probe is set to true: bid_breaker_note() must be told how it ends. */
bool bid_breaker_admits(struct bid_breaker *breaker, int64_t now, bool *ret_probe);

/* A request, which was the probe if @probe, ended with @sign; @text says how, and the server asks for @retry_after_s of peace. */
void bid_breaker_note(struct bid_breaker *breaker, int64_t now, bool probe, enum bid_sign sign, int64_t retry_after_s,
		      const char *text);

/*
 * The probe is being answered, and well: others are admitted, and it is a request like any other from then on. The next failure
 * ends that, and makes the pause longer, as if it were the probe's.
 */
void bid_breaker_answered(struct bid_breaker *breaker);

/* "breaker open until 14:03:27: could not connect: ...": the same text until the probe is on its way, and then another. */
void bid_breaker_describe(const struct bid_breaker *breaker, char *buf, size_t size);

/* Seconds until the next probe, rounded up; 0 if requests are admitted, or it is on its way. */
unsigned bid_breaker_remaining_s(const struct bid_breaker *breaker, int64_t now);

#endif
