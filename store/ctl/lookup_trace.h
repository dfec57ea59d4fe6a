/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The course of one lookup, for "bidctl get --verbose" and for failed lookups. */
#ifndef BID_CTL_LOOKUP_TRACE_H
#define BID_CTL_LOOKUP_TRACE_H

#include <jansson.h>

#include "api/broker.h"
#include "api/store.h"

struct ctl_trace {
	int stored; /* first result of bid_store_find() */
	unsigned negative_ttl_s; /* remaining seconds of the negative cache entry behind a result without requests; else 0 */
	unsigned waited_ms; /* wait for another process's download */
	bool changed; /* a server has other bytes than the first download, which --accept would take */
	bool of_mount; /* the responses are the last ones of the mount over the store, of whatever time */
	json_t *servers; /* array of responses, in the form of docs/JSON.md; NULL without one. Owned */
};

void ctl_trace_release(struct ctl_trace *trace);

/* Copy the servers' responses out of @result. Responses beyond the memory are left out. */
void ctl_trace_add(struct ctl_trace *trace, const struct bid_result *result);

/* Add the negative cache entry of @server, which ends in @again_s seconds; 0 for none. */
void ctl_trace_add_negative(struct ctl_trace *trace, const char *server, unsigned again_s);

/* As ctl_trace_add(), from the @responses of ctl_covering_mount_responses() that are about @artifact. */
void ctl_trace_add_responses(struct ctl_trace *trace, const json_t *responses, const struct bid_artifact *artifact);

/* Did each of @servers, an array, respond "absent", with a retry only later? NULL is an unknown number of servers. */
bool ctl_trace_all_absent(const struct ctl_trace *trace, const json_t *servers);

/* Print an error message for each attempt at a server, or at a file in place of a section. */
void ctl_trace_print_errors(const struct ctl_trace *trace);

/* Print on standard error, step by step, the lookup of @artifact in @store and its result: @error, or the file at @path. */
void ctl_trace_print(const struct ctl_trace *trace, struct bid_store *store, const struct bid_artifact *artifact, int error,
		     const char *path);

#endif
