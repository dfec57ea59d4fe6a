// SPDX-License-Identifier: LGPL-2.1-or-later
/* Common parts of the checks: their scope, and the report of findings. */
#include "disk/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/digest.h"
#include "disk/entries.h"
#include "disk/layout.h"
#include "disk/store.h"

enum { TOLD_MS = 50 }; /* how often a thread tells of its progress */

bool bid_verify_wants(const struct bid_verify *verify, const struct bid_id *filed)
{
	return !verify->config->ids || bid_idset_find(verify->wanted, filed);
}

int bid_verify_found(struct bid_verify *verify, const struct bid_finding *finding)
{
	const struct bid_verify_config *config = verify->config;
	int r = 0;

	verify->stats.found[finding->kind]++;
	if (!finding->repaired)
		verify->stats.left++;
	if (!config->found)
		return 0;
	pthread_mutex_lock(&verify->shared->lock);
	r = atomic_load(&verify->shared->ended);
	if (r == 0)
		r = bid_verify_end(verify, config->found(config->user, finding));
	pthread_mutex_unlock(&verify->shared->lock);
	return r;
}

void bid_verify_count(struct bid_verify *verify)
{
	struct bid_verify_stats *all = &verify->shared->told, *now = &verify->stats, *before = &verify->told;

	all->names += now->names - before->names;
	all->objects += now->objects - before->objects;
	all->bytes += now->bytes - before->bytes;
	all->digests += now->digests - before->digests;
	all->links += now->links - before->links;
	all->records += now->records - before->records;
	all->foreign += now->foreign - before->foreign;
	all->left += now->left - before->left;
	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		all->found[kind] += now->found[kind] - before->found[kind];
	*before = *now;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int bid_verify_progress(struct bid_verify *verify)
{
	const struct bid_verify_config *config = verify->config;
	int r = atomic_load_explicit(&verify->shared->ended, memory_order_relaxed);
	uint64_t now;

	if (r != 0 || !config->progress)
		return r;
	now = now_ms();
	if (now < verify->told_ms + TOLD_MS)
		return 0;
	verify->told_ms = now;
	pthread_mutex_lock(&verify->shared->lock);
	bid_verify_count(verify);
	r = bid_verify_end(verify, config->progress(config->user, &verify->shared->told));
	pthread_mutex_unlock(&verify->shared->lock);
	return r;
}

int bid_verify_fan(struct bid_verify *verify, const struct bid_id *filed)
{
	atomic_int *fan = &verify->shared->fans[filed->bytes[0]];
	char path[sizeof(BID_LAYOUT_LINKS) + 4];
	int fd = atomic_load(fan), none = -1;

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), BID_LAYOUT_LINKS "/%02x", filed->bytes[0]);
	if (bid_beneath_open(bid_store_root(verify->store), path, O_PATH | O_DIRECTORY, &fd) < 0)
		return -ENOENT;
	if (atomic_compare_exchange_strong(fan, &none, fd))
		return fd;
	bid_close(fd);
	return none;
}

bool bid_verify_claim(struct bid_verify *verify, enum bid_verify_part part, uint8_t first)
{
	return !atomic_exchange(&verify->shared->claimed[part][first], true);
}

const char *bid_verify_record_fault(const json_t *record, const struct bid_request *request, off_t size)
{
	const char *id = json_string_value(json_object_get(record, "id")),
		   *kind = json_string_value(json_object_get(record, "kind"));
	const json_t *digest = json_object_get(record, "digest");
	struct bid_id named, filed;

	if (!id || bid_id_parse_str(id, &named) < 0)
		return "has no id";
	filed = bid_layout_filed(&named);
	if (!bid_id_equal(&filed, &request->id) || !kind || strcmp(kind, bid_kind_name(request->kind)) != 0)
		return "is of something else than its name says";
	if (digest && (!json_is_string(digest) || !bid_digest_valid(json_string_value(digest))))
		return "has no digest of the known form";
	if (!json_is_string(json_object_get(record, "how")) || !json_is_integer(json_object_get(record, "time")) ||
	    !json_is_integer(json_object_get(record, "size")))
		return "lacks what every record has";
	/* replaced by another file of the same build; but probe definitions are written on, by perf and by others */
	if (request->kind != BID_KIND_PROBES && json_integer_value(json_object_get(record, "size")) != (json_int_t)size)
		return "is of a file of another size";
	return NULL;
}

bool bid_verify_drop(struct bid_verify *verify, const char *path)
{
	return bid_entry_unlink(verify->store, path) == 0 || bid_entry_rmdir(verify->store, path) == 0;
}
