/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A source: somewhere artifacts come from when the store has none. The broker asks sources in order; it checks what they deliver,
 * so a source need not, and must not be trusted to.
 *
 * A source answers asynchronously. For each successful start() it calls
 *
 *   receiver->sent		when it has begun to ask, rather than to wait in line for that
 *   receiver->head		at most once per body, before it
 *   receiver->body		any number of times
 *   receiver->broke_off	when the body broke off, and it tries again by itself: a head may follow, or the rest of the body
 *   receiver->done		exactly once, last
 *
 * from one thread at a time; it may be from inside start().
 */
#ifndef BID_API_SOURCE_H
#define BID_API_SOURCE_H

#include <sys/types.h>

#include "api/artifact.h"

/* What a source says in the end. */
enum bid_outcome {
	BID_OUTCOME_NONE = 0,
	BID_OUTCOME_FOUND, /* the body was delivered, complete as far as the transport can tell */
	BID_OUTCOME_ABSENT, /* a definite no */
	BID_OUTCOME_TOO_LARGE, /* it has the artifact, above the size limit */
	BID_OUTCOME_UNSUPPORTED, /* it does not offer this kind at all */
	BID_OUTCOME_REFUSED, /* it will not say: authorisation, rate limit, configuration */
	BID_OUTCOME_UNREACHABLE, /* could not be asked, or broke off: DNS, connect, TLS, reset, 5xx, stall */
	BID_OUTCOME_REJECTED, /* what it delivered is not what was asked for; said by who sees it: receiver, broker or source */
	BID_OUTCOME_FAILED, /* the receiver failed: a local trouble, such as a full disk */
	BID_OUTCOME_CANCELLED,
	BID_OUTCOME_COUNT
};

/* "found", "absent", … Static. */
const char *bid_outcome_name(enum bid_outcome outcome);

/* Does this outcome say that the artifact is not at the source? */
bool bid_outcome_is_no(enum bid_outcome outcome);

/* Is it worth telling: neither delivered, nor absent, nor ended by the broker? */
bool bid_outcome_is_trouble(enum bid_outcome outcome);

#define BID_SIZE_UNKNOWN UINT64_MAX

/* What a source knows of a body. The strings live until done() returns; they come from outside. */
struct bid_answer {
	enum bid_outcome outcome;
	bool not_sent; /* nothing was sent: the source is left alone for a while, or it was cancelled before */
	bool lasting; /* with BID_OUTCOME_REFUSED: that is its answer to this request, and will be for a while */
	const char *text; /* in words, for people: "HTTP 404", "no connection: Connection refused" */
	const char *url; /* what was asked; without user name and password */
	const char *led_to; /* where it was redirected to, without those and without a query, or NULL */
	unsigned tries; /* in which that was said, if the source tries again by itself; 0 if it does not tell */
	const char *before; /* with several: what the last of them came to that was no answer, in words; or NULL */
	const char *file; /* the file's name at the source, or NULL */
	const char *archive; /* the archive it was in, or NULL */
	uint64_t size; /* as announced, or BID_SIZE_UNKNOWN */
	const char *ima_signature; /* of the file, as the source has it: lower-case hex, whole bytes; not checked. Or NULL */
	int64_t modified; /* when the file was modified, in seconds since the epoch; 0 if it was not said */
	unsigned retry_after_s; /* not to be asked again before; 0 if it does not matter */
};

#define BID_IMA_SIGNATURE_MAX 4096 /* characters of an ima_signature, without its NUL */

struct bid_receiver {
	/* It may be worth waiting for. May be NULL. */
	void (*sent)(void *user);
	/*
	 * A body of @size bytes (or BID_SIZE_UNKNOWN) begins; drop any earlier one. Non-zero (a negative errno) ends the
	 * transfer.
	 */
	int (*head)(void *user, uint64_t size);
	/*
	 * Bytes of the body. Non-zero ends the transfer: -EBADMSG as BID_OUTCOME_REJECTED, others as BID_OUTCOME_FAILED. But with
	 * -EAGAIN, only of a source that has resume(), it pauses: after that the same bytes come again.
	 */
	int (*body)(void *user, const void *data, size_t len);
	/* Nothing will come for a while: others may be asked meanwhile. May be NULL. */
	void (*broke_off)(void *user);
	/* The end. @answer and what it points to die when this returns. Must not block for long, nor call back into the source. */
	void (*done)(void *user, const struct bid_answer *answer);
};

struct bid_source;

/* Is a source to be asked at all? One that failed is left alone for a while, so that an outage is paid for once. */
enum bid_breaker_state {
	BID_BREAKER_CLOSED = 0, /* it is asked */
	BID_BREAKER_OPEN, /* it is not asked until the next probe; requests end at once, as BID_OUTCOME_UNREACHABLE */
	BID_BREAKER_PROBING, /* one request is on its way to find out; others wait for how it ends, a second at most */
};

/* "closed", "open", "probing". Static. */
const char *bid_breaker_state_name(enum bid_breaker_state state);

/* Can a source send the rest of a file that broke off? Learned from its answers, without asking. */
enum bid_ranges {
	BID_RANGES_UNKNOWN = 0, /* it has sent no file yet */
	BID_RANGES_NONE, /* it does not say so, or nothing by which the file could be told from a later one */
	BID_RANGES_OFFERED, /* it says so */
	BID_RANGES_SENT, /* it did */
	BID_RANGES_IGNORED, /* it says so, and does not: it is not asked to any more */
};

/* "unknown", "none", "offered", "sent", "ignored". Static. */
const char *bid_ranges_name(enum bid_ranges ranges);

/* How a source fares, for people. What it answered is counted by the broker. */
struct bid_source_health {
	enum bid_breaker_state breaker;
	unsigned failures; /* in a row, up to now */
	unsigned next_probe_s; /* while open: until it may be asked again */
	unsigned latency_ms; /* moving average, from the request to the header of the answer; 0 if it never answered */
	uint64_t refused; /* requests that ended because of the breaker */
	const char *protocol; /* of its last answer, "HTTP/2"; static; NULL if it never answered, or has none */
	enum bid_ranges ranges;
	unsigned lacks; /* kinds that it said lately not to know at all: bits 1 << enum bid_kind */
	char trouble[128]; /* what the failures were, the last one; "" if there are none */
};

/* Every source begins with this; the broker knows nothing else of it. */
struct bid_source_ops {
	/*
	 * Ask for @request. Returns 0 and a number for cancel() in @ret_transfer, written before anything of @receiver is called;
	 * or a negative errno, and then nothing of @receiver is called. Never blocks on the network.
	 */
	int (*start)(struct bid_source *source, const struct bid_request *request, const struct bid_receiver *receiver, void *user,
		     uint64_t *ret_transfer);
	/*
	 * End that transfer soon: done() still comes, perhaps from inside this call, as BID_OUTCOME_CANCELLED unless it ended by
	 * itself. Unknown numbers are ignored.
	 */
	void (*cancel)(struct bid_source *source, uint64_t transfer);
	/*
	 * Let a transfer go on that body() paused. Unknown numbers are ignored. NULL for a source that does not pause: its thread
	 * waits inside body().
	 */
	void (*resume)(struct bid_source *source, uint64_t transfer);
	/*
	 * What it delivered was checked: it is @right, or not what was asked for, as @text says. NULL for a source that does not
	 * care. From any thread, but not from inside a receiver; does not block.
	 */
	void (*checked)(struct bid_source *source, bool right, const char *text);
	/* Give it up, with every transfer cancelled and every done() returned. */
	void (*free)(struct bid_source *source);
	/* How it fares. NULL for a source that does not tell. From any thread; does not block. */
	void (*health)(struct bid_source *source, struct bid_source_health *ret_health);
};

struct bid_source {
	const struct bid_source_ops *ops;
	const char *name; /* for messages; of a server its URL without user name and password. Owned by the source */
};

/*
 * A tree of files by build-id in the directory @path, which is absolute, as a source: in the layout of debuginfod's web API,
 * buildid/ID/debuginfo and so on, such as another mount.bidfs, or in the debuggers', .build-id/xx/rest.debug. It is looked for
 * at each request, so it may be mounted later; if there is no such tree, that is no proof that an artifact is absent. Starts
 * threads, which are those that wait for its file system; a request that waits for one answer of that for more than @limit_ms
 * is told that it cannot be asked, and threads that it never answers outlive the source. On the device @own, unless that is 0,
 * it has nothing: a mount that was to fetch from itself, by whatever name, would wait for itself. With @for_all it refuses files
 * whose mode does not let everybody read them. Links lead out of it only as bid_store_allow_links() has it for @links, or NULL.
 */
int bid_source_tree_new(const char *name, const char *path, dev_t own, bool for_all, unsigned limit_ms, const char *const *links,
			struct bid_source **ret_source);

#endif
