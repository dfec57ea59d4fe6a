/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The broker: the only way to an artifact that may need a download. It looks into the store and the negative cache. Then it
 * attempts the servers, the preferred server first, through transactions that check before they publish. Any number of callers for
 * one artifact share one download.
 *
 * bid_broker_new(), bid_broker_add_server()
 * bid_broker_look_up()		-EINPROGRESS: a server may have it
 * bid_broker_new_waiter()
 * bid_broker_fetch()		calls the function of the waiter once
 * bid_broker_cancel()		ends the wait
 * bid_broker_free()
 */
#ifndef BID_API_BROKER_H
#define BID_API_BROKER_H

#include "api/server.h"
#include "api/signature.h"
#include "api/store.h"

struct bid_broker;

struct bid_broker_config {
	unsigned wait_ms; /* the longest a caller waits for a download; 0 is for ever */
	uint64_t max_size; /* refuse larger artifacts; 0 means no limit */
	unsigned hedge_ms; /* interval of hedged requests to further servers while none delivers; 0 is 300 */
	bool prefetch; /* also fetch the dwz file (dwz(1)) of fetched debuginfo */
	bool detect_loops; /* detect a server that silently requests artifacts from this broker in turn */
};

/* A server's report for one artifact, as the broker keeps it. */
struct bid_report {
	const char *server; /* its name; lives as long as the broker */
	struct bid_artifact artifact;
	enum bid_outcome outcome;
	bool changed; /* with BID_OUTCOME_REJECTED: bid_broker_refresh() with @accept would take the artifact */
	const char *text; /* in words */
	const char *url; /* requested URL, without user name and password; NULL if the server has none */
	const char *redirect; /* target of the redirection, likewise; NULL without one */
	unsigned requests; /* number of requests to it, with retries; 0 if unknown */
	const char *before; /* with several requests: the last failure before this report, in words; or NULL */
	uint64_t bytes; /* bytes of body received, with repetitions */
	uint64_t received; /* bytes of the file received, without repetitions */
	unsigned elapsed_ms; /* from the start of the attempt to its end, with the check and the commit */
	int64_t time; /* seconds since the epoch; 0 for a report from before the broker or to another process */
	uint64_t count; /* equal reports of the server, this one included, with fewer than BID_REPORTS_MAX others in between */
	int64_t first_time; /* time of the first of them */

	/* the broker's */
	unsigned refs;
	int64_t logged_ms; /* time of the last message about one of them; 0 for none */
};

/*
 * Takes a report, which dies when the callback returns, and the seconds until the next attempt at the server; 0 without a negative
 * cache entry. A non-zero return ends the enumeration.
 */
typedef int (*bid_report_fn)(void *user, const struct bid_report *report, unsigned again_s);

/* The result for a caller. All of it dies when the callback returns, except a descriptor that the callback took out of @file. */
struct bid_result {
	int error; /* 0 or a negative errno, as in <bid/error.h> */
	struct bid_file *file; /* with error 0; the callback keeps it by setting file->fd to -1 */
	/* reports of the attempted servers; for a section also those for its whole files */
	const struct bid_report *const *reports;
	size_t n_reports;
	unsigned waited_ms; /* time spent on another process's download before the first attempt */
};

/* Called once per waiter, from any thread, perhaps from inside bid_broker_fetch(). No lock is held. */
typedef void (*bid_broker_fn)(void *user, const struct bid_result *result);

/* Make a broker for @store, which must outlive it. Starts threads: call it after daemonising. */
int bid_broker_new(struct bid_store *store, const struct bid_broker_config *config, struct bid_broker **ret_broker);

/* Add @server behind the servers added before. The broker owns @server, and frees it on failure. Only before the first request. */
int bid_broker_add_server(struct bid_broker *broker, struct bid_server *server);

/* Is there any server? */
bool bid_broker_has_servers(const struct bid_broker *broker);

/* Go offline or online. Running transfers end normally; queued ones are dropped. Online closes all breakers. Does not block. */
void bid_broker_set_offline(struct bid_broker *broker, bool offline);
bool bid_broker_is_offline(const struct bid_broker *broker);

/* End every download and every wait (-EINTR), free the servers. @broker may be NULL. */
void bid_broker_free(struct bid_broker *broker);

/*
 * Find the artifact without waiting for a server. Returns 0; -ENOENT (absent, for now or by the negative cache); -EFBIG (by the
 * negative cache); -EINPROGRESS (a server may have it, or a disk worker can make it: call bid_broker_fetch()); -EHOSTUNREACH
 * (likewise, but the broker is offline); or as bid_store_find(), with -EBADMSG only without servers. With -ENOENT, sets @ret_ttl,
 * which may be NULL, to the rest of the negative TTL in seconds; 0 if no server was attempted.
 */
int bid_broker_look_up(struct bid_broker *broker, const struct bid_artifact *artifact, struct bid_file *ret_file,
		       unsigned *ret_ttl);

/*
 * Make a waiter, and return its id, which is never zero. @fn is called once. The waiter costs memory until the call, so pass every
 * id to bid_broker_fetch(). With @fn NULL no caller waits: the broker fetches the artifact for later callers.
 */
int bid_broker_new_waiter(struct bid_broker *broker, bid_broker_fn fn, void *user, uint64_t *ret_waiter_id);

/*
 * Get the artifact and call the function of the waiter: at once if the artifact is local or known to be absent, else at the end of
 * the download or of the deadline. Returns at once; reports all errors through the callback. If all servers lack a section, the
 * broker fetches the files that may contain it.
 */
void bid_broker_fetch(struct bid_broker *broker, uint64_t waiter_id, const struct bid_artifact *artifact);

/*
 * Cancel a waiter: its function is called with -EINTR, inside this call or inside a running bid_broker_fetch(). A used id is
 * ignored, so this call may race with the end of the download. Cancels a download without further waiters, unless a waiter reached
 * its deadline.
 */
void bid_broker_cancel(struct bid_broker *broker, uint64_t waiter_id);

/*
 * Forget the reports for @artifact, negative, wrong, too large or failed, so that the next request attempts the servers again. On
 * disk this holds for all programs with the store. With BID_KIND_NONE this covers all fetchable artifacts of the id except sources
 * and sections, which need a request each; so does an unstripped file, which is made of them. With @accept, the broker
 * also forgets the first-seen digests, and takes other bytes. May block on disk for a moment. Returns 0 or -EINVAL.
 */
int bid_broker_refresh(struct bid_broker *broker, const struct bid_artifact *artifact, bool accept);

struct bid_progress {
	uint64_t received; /* bytes so far from the delivering server */
	uint64_t size; /* as announced, or BID_SIZE_UNKNOWN */
	char server[256]; /* name of the delivering server; "" before the first byte */
	struct bid_artifact artifact; /* without its subpath */
	char subpath[256]; /* subpath of the artifact, truncated; "" if none */
	unsigned waiters;
	unsigned age_ms;
};

/* How far the download of the waiter is. 0, or -ENOENT without one. */
int bid_broker_progress(struct bid_broker *broker, uint64_t waiter_id, struct bid_progress *ret_progress);

/* Call @fn for a copy of each download in flight. A non-zero return ends the enumeration. */
void bid_broker_each_download(struct bid_broker *broker, int (*fn)(void *user, const struct bid_progress *progress), void *user);

/* statistics of one server */
struct bid_server_stats {
	const char *name; /* lives as long as the broker */
	uint64_t requests; /* sent to it */
	uint64_t outcomes[BID_OUTCOME_COUNT];
	uint64_t bytes; /* received */
	bool enforces; /* accepts only files with a signature */
	char signer[BID_SIGNER_MAX]; /* signer of its last file; "" without one */
	bool preferred; /* the preferred server: it delivered last */
	struct bid_server_health health; /* health as reported by the server; zero without a report */
};

struct bid_broker_stats {
	uint64_t hits; /* answered from the store */
	uint64_t fetched; /* published after a download */
	uint64_t absent; /* answered "absent", remembered or fresh */
	uint64_t unknown; /* results "unknown": timed out, or an unreachable server */
	uint64_t rejected; /* bodies of wrong artifacts */
	uint64_t interrupted; /* waits given up */
	uint64_t negative_entries; /* valid negative entries, and entries for too large artifacts */
	uint64_t downloads; /* downloads at the moment */
	uint64_t waiters; /* at the moment */
};

void bid_broker_stats(struct bid_broker *broker, struct bid_broker_stats *ret_stats);

/* limit of kept reports of all servers */
#define BID_REPORTS_MAX 256

#define BID_FAILURES_MAX 16

/*
 * Call @fn for each of the last BID_FAILURES_MAX failures, newest first: reports other than "found" and "absent". Equal failures
 * are one.
 */
void bid_broker_each_failure(struct bid_broker *broker, bid_report_fn fn, void *user);

/*
 * Call @fn for the last report of each server to each request for @id, newest first. Older entries for its artifacts follow,
 * without sources and sections. Returns the last return of @fn. May block on disk for a moment.
 */
int bid_broker_each_report(struct bid_broker *broker, const struct bid_id *id, bid_report_fn fn, void *user);

/* The @index-th server, in the order in which they were added. 0, or -ENOENT past the last. */
int bid_broker_server_stats(struct bid_broker *broker, size_t index, struct bid_server_stats *ret_stats);

#endif
