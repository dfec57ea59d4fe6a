/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The broker: the one way to an artifact that may have to be fetched. It looks into the store, then at what is remembered as
 * absent, then asks the sources, the one first that delivered last, through transactions that check before they publish. Any
 * number of callers that want one artifact share one download.
 */
#ifndef BID_API_BROKER_H
#define BID_API_BROKER_H

#include "api/source.h"
#include "api/store.h"

struct bid_broker;

/* As hedge_ms: ask one source after the other. */
#define BID_HEDGE_NEVER UINT32_MAX

struct bid_broker_config {
	unsigned wait_ms; /* the longest a caller waits for a download; 0 is for ever */
	uint64_t max_size; /* refuse larger artifacts; 0 means no limit */
	unsigned hedge_ms; /* one more source is asked each time that none delivers by then; 0 is 300 */
	bool accept; /* take other bytes than were fetched first under an id */
	bool prefetch; /* with debuginfo that refers to a dwz file (dwz(1)), begin to fetch that too, for whoever reads on */
	bool loops; /* find out whether a source that says nothing asks this broker in turn */
	bool no_negative; /* forget what is remembered as absent, wrong or too large when it is asked for, and ask the sources */
};

/* What one source answered, in the end, for one request. */
struct bid_report {
	const char *source; /* its name */
	enum bid_outcome outcome;
	bool changed; /* with BID_OUTCOME_REJECTED: all that is wrong with it is what bid_broker_config.accept takes */
	const char *text; /* in words */
	const char *url; /* what was asked, without user name and password; NULL if the source did not say */
	const char *led_to; /* where that was redirected to, likewise; NULL if it was not */
	unsigned tries; /* in which that was said; 0 if the source did not say */
	const char *before; /* with several: what the last of them came to that was no answer, in words; or NULL */
	uint64_t bytes; /* of body that came in, repeated ones too */
	uint64_t received; /* without those: of the file */
	unsigned elapsed_ms; /* from asking until this was known, checking and publishing included */
};

/* What a caller gets. All of it dies when the callback returns, but a descriptor that the callback took out of @file. */
struct bid_result {
	int error; /* 0 or a negative errno, as in <bid/error.h> */
	struct bid_file *file; /* with error 0: the callback may keep it by setting file->fd to -1 */
	const struct bid_report
		*reports; /* what each source that was asked said; of a section also to what was asked in its place */
	size_t n_reports;
	unsigned waited_ms; /* for what another process fetched, before anybody was asked */
};

/* Called once per ticket, from any thread, perhaps from inside bid_broker_fetch(). No lock is held. */
typedef void (*bid_broker_fn)(void *user, const struct bid_result *result);

/* @store must outlive the broker. Starts threads: call it after daemonising. */
int bid_broker_new(struct bid_store *store, const struct bid_broker_config *config, struct bid_broker **ret_broker);

/* Ask @source too, after those added before. The broker owns it from here on. Only before the first request. */
int bid_broker_add_source(struct bid_broker *broker, struct bid_source *source);

/* Is there any source to ask? */
bool bid_broker_has_sources(const struct bid_broker *broker);

/*
 * Ask no source from now on, or ask them again. What they have been asked for already comes to its end, but what is still in line
 * is not asked for. Does not block.
 */
void bid_broker_set_offline(struct bid_broker *broker, bool offline);
bool bid_broker_is_offline(const struct bid_broker *broker);

/* End every download and every wait (-EINTR), free the sources. @broker may be NULL. */
void bid_broker_free(struct bid_broker *broker);

/*
 * The artifact, if it is here. Never waits for a source. Returns 0, -ENOENT (absent, for now or remembered), -EFBIG (remembered),
 * -EINPROGRESS (a source may have it: bid_broker_fetch() it), -EHOSTUNREACH (likewise, but the broker is offline), or as
 * bid_store_find(), but -EBADMSG only if there is no source to ask instead. @ret_ttl, if not NULL, is set with -ENOENT: the
 * seconds for which the sources' "no" stands, 0 if no source was ever asked.
 */
int bid_broker_find(struct bid_broker *broker, const struct bid_request *request, struct bid_file *ret_file, unsigned *ret_ttl);

/*
 * A ticket: the right to one call of @fn, and the handle by which a wait is given up. Zero is never one. Costs a little memory
 * until the call was made, so every ticket must be used up by bid_broker_fetch(). With @fn NULL nobody waits: what is asked
 * for is fetched for whoever comes later.
 */
int bid_broker_ticket(struct bid_broker *broker, bid_broker_fn fn, void *user, uint64_t *ret_ticket);

/*
 * Bring the artifact here, if it is anywhere, and call the ticket's function with it: at once if it is local or known to be absent,
 * else when the download is over or the bounded wait is. Returns at once; never fails but through the callback.
 *
 * A section that every source says "no" to is looked for in the files that it may be in, which are brought here for that.
 */
void bid_broker_fetch(struct bid_broker *broker, uint64_t ticket, const struct bid_request *request);

/*
 * Give up the wait of @ticket: its function is called with -EINTR, from inside this call or from the fetch() that is under
 * way. A ticket that was used up already is ignored, so this may race with the end of the download. A download that nobody waits
 * for any more, and nobody timed out on, is cancelled.
 */
void bid_broker_cancel(struct bid_broker *broker, uint64_t ticket);

/*
 * Forget what sources said of @request that it was absent, wrong, too large or not to be had, so that whoever wants it next has
 * them asked: for all programs that use the store, as far as it is kept there. With kind BID_KIND_NONE it is the artifacts of the
 * id that can be fetched, but no sources and sections, which are to be named. With @accept, other bytes than were fetched first are
 * taken for a minute and a half, or until they were. May block on disk for a moment. Returns 0 or -EINVAL.
 */
int bid_broker_refresh(struct bid_broker *broker, const struct bid_request *request, bool accept);

struct bid_progress {
	uint64_t received; /* bytes so far, from the source that is delivering */
	uint64_t size; /* as announced, or BID_SIZE_UNKNOWN */
	char source[256]; /* which one that is; "" if none yet */
	struct bid_request request; /* without its detail */
	char detail[256]; /* of the request, as much as fits; "" if it has none */
	unsigned waiters;
	unsigned age_ms;
};

/* How far the download behind @ticket is. 0, or -ENOENT if the ticket waits for none. */
int bid_broker_progress(struct bid_broker *broker, uint64_t ticket, struct bid_progress *ret_progress);

/* Call @fn for every download in download, on a copy. A non-zero return ends it. */
void bid_broker_each_download(struct bid_broker *broker, int (*fn)(void *user, const struct bid_progress *progress), void *user);

/* What one source did so far. */
struct bid_source_stats {
	const char *name; /* lives as long as the broker */
	uint64_t asked; /* requests that were sent to it */
	uint64_t outcomes[BID_OUTCOME_COUNT];
	uint64_t bytes; /* received */
	char last_trouble[256]; /* the last answer that was neither found nor absent; "" if none */
	int64_t last_trouble_time; /* seconds since the epoch */
	bool preferred; /* it delivered last, and is asked first */
	struct bid_source_health health; /* as the source says; all zero if it does not tell */
};

struct bid_broker_stats {
	uint64_t hits; /* answered from the store */
	uint64_t fetched; /* published after a download */
	uint64_t absent; /* answered "absent", remembered or fresh */
	uint64_t unknown; /* answered "unknown": timed out, or a source could not be asked */
	uint64_t rejected; /* bodies that were not what was asked for */
	uint64_t interrupted; /* waits given up */
	uint64_t negative_entries; /* each "no" of a source that stands at the moment, and what is remembered as too large */
	uint64_t downloads; /* downloads at the moment */
	uint64_t waiters; /* at the moment */
};

void bid_broker_stats(struct bid_broker *broker, struct bid_broker_stats *ret_stats);

/* As many responses of sources are kept, whatever they were. */
#define BID_RESPONSES_MAX 256

#define BID_FAILURES_MAX 16

/* What went wrong lately: kept responses that were neither "found" nor "absent". Those that say the same are one. */
struct bid_failure {
	const char *source; /* lives as long as the broker */
	struct bid_request request; /* the last one of them, without its detail */
	enum bid_outcome outcome;
	char text[256]; /* in words */
	uint64_t count; /* how often it was said, with less than BID_RESPONSES_MAX responses in between */
	int64_t first_time, last_time; /* seconds since the epoch */
};

/* Call @fn for each of the last BID_FAILURES_MAX, newest first, on a copy. A non-zero return ends it. */
void bid_broker_each_failure(struct bid_broker *broker, int (*fn)(void *user, const struct bid_failure *failure), void *user);

/* What one source said last of one request. */
struct bid_last_response {
	struct bid_request request;
	struct bid_report report; /* its source lives as long as the broker */
	int64_t time; /* when, in seconds since the epoch; 0 if it was said before the broker was made, or to another process */
	unsigned again_s; /* for so long it is not asked of that again, for what it said */
};

/* @response dies when it returns. A non-zero return ends it, and is returned. */
typedef int (*bid_response_fn)(void *user, const struct bid_last_response *response);

/*
 * Call @fn for the last response of each source to each request for @id, newest first, as far as it is kept; then for what stands
 * from before against its artifacts that are no sources and sections. May block on disk for a moment.
 */
int bid_broker_each_response(struct bid_broker *broker, const struct bid_id *id, bid_response_fn fn, void *user);

/* The @index-th source, in the order of asking. 0, or -ENOENT past the last. */
int bid_broker_source_stats(struct bid_broker *broker, size_t index, struct bid_source_stats *ret_stats);

#endif
