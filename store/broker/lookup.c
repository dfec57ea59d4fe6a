// SPDX-License-Identifier: LGPL-2.1-or-later
/* Look up an artifact without a request to a server: in the store, then in the negative cache. */
#include "broker/broker_types.h"

#include <errno.h>
#include <limits.h>

#include "api/evict.h"
#include "base/local_error.h"

/* May a server get @artifact? Only with a place for the body. */
static bool can_fetch(const struct bid_broker *broker, const struct bid_artifact *artifact)
{
	return broker->n_servers > 0 && bid_kind_fetchable(artifact->kind) && bid_store_writable(broker->store);
}

static bool is_too_large(struct bid_broker *broker, const struct bid_artifact *artifact)
{
	unsigned ttl;

	return bid_negative_lookup(broker->negative, artifact, BID_NEGATIVE_ALL, &ttl) == BID_OUTCOME_TOO_LARGE;
}

/* Returns the seconds for which @artifact is absent at all servers, one at least; 0 if a server may have it. */
static unsigned absent_for(struct bid_broker *broker, const struct bid_artifact *artifact)
{
	unsigned shortest = UINT_MAX, ttl;

	for (size_t i = 0; i < broker->n_servers; i++) {
		if (bid_negative_lookup(broker->negative, artifact, broker->servers[i].server->name, &ttl) != BID_OUTCOME_ABSENT)
			return 0;
		shortest = ttl < shortest ? ttl : shortest;
	}
	return shortest;
}

/* May a server have unstripped debuginfo? */
static bool may_improve(struct bid_broker *broker, const struct bid_artifact *artifact)
{
	return can_fetch(broker, artifact) && !atomic_load(&broker->offline) && !is_too_large(broker, artifact) &&
	       absent_for(broker, artifact) == 0;
}

int bid_broker_find(struct bid_broker *broker, const struct bid_artifact *artifact, enum bid_derive derive,
		    struct bid_file *ret_file, unsigned *ret_ttl)
{
	struct bid_file file = BID_FILE_NONE;
	unsigned ttl = 0;
	int r;

	if (!bid_artifact_valid(artifact))
		return -EINVAL;
	r = bid_store_find(broker->store, artifact, derive, &file);
	if (r == 0 && file.stripped && may_improve(broker, artifact)) {
		bid_file_release(&file);
		return -EINPROGRESS;
	}
	if (r == 0) {
		atomic_fetch_add_explicit(&broker->counts.hits, 1, memory_order_relaxed);
		bid_store_used(broker->store,
			       &(struct bid_artifact){ .id = artifact->id, .kind = file.kind, .subpath = artifact->subpath });
		*ret_file = file;
	}
	/* the present files prove that the section does not exist */
	if (r == -ENODATA) {
		if (ret_ttl)
			*ret_ttl = 0;
		return -ENOENT;
	}
	/* a server may have the other part */
	if (artifact->kind == BID_KIND_UNSTRIPPED)
		return r == -ENOENT ? -EINPROGRESS : r;
	if (r != -ENOENT && !bid_is_unusable(r))
		return r;
	if (bid_self_request_recognise(broker, &artifact->id))
		return -ENOENT;
	if (can_fetch(broker, artifact)) {
		if (is_too_large(broker, artifact))
			return -EFBIG;
		ttl = absent_for(broker, artifact);
		if (ttl == 0)
			return atomic_load(&broker->offline) ? -EHOSTUNREACH : -EINPROGRESS;
		r = -ENOENT;
	}
	if (r == -ENOENT && ret_ttl)
		*ret_ttl = ttl;
	return r;
}

int bid_broker_look_up(struct bid_broker *broker, const struct bid_artifact *artifact, struct bid_file *ret_file, unsigned *ret_ttl)
{
	int r = bid_broker_find(broker, artifact, BID_NEVER_DERIVE, ret_file, ret_ttl);

	/* a disk worker derives it, as the first task of a download */
	if (r == -EAGAIN)
		return -EINPROGRESS;
	if (r == -ENOENT)
		atomic_fetch_add_explicit(&broker->counts.absent, 1, memory_order_relaxed);
	else if (r == -EHOSTUNREACH)
		atomic_fetch_add_explicit(&broker->counts.unknown, 1, memory_order_relaxed);
	return r;
}
