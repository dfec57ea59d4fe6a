// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl gc */
#include <time.h>

#include <bid/error.h>

#include "api/evict.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

/* Quarantined files and scan results, dropped by age. */
struct aged {
	struct bid_forgotten left, gone;
};

static void print_evicted(void *user, const struct bid_eviction *eviction)
{
	const struct ctl *ctl = user;

	if (ctl->json || ctl->dry_run || ctl->verbose)
		ctl_row(ctl, CTL_ID("id", 40, &eviction->artifact.id), CTL_KIND("kind", 9, eviction->artifact.kind),
			CTL_TEXT("origin", 7, eviction->made ? "derived" : "fetched"), CTL_SIZE("size", -8, eviction->size),
			CTL_TIME("time", 19, eviction->last_use), CTL_STATE("state", 0, "evicted"),
			CTL_TEXT("stored", CTL_HIDDEN, eviction->path));
}

/* Drop quarantined files and scan results without a use for BID_FORGET_S. */
static void forget_old(const struct ctl *ctl, struct bid_store *store, struct aged *aged)
{
	int r = bid_store_forget(store, (int64_t)time(NULL) - BID_FORGET_S, ctl->dry_run, &aged->left, &aged->gone);

	if (r < 0)
		bid_warning("%s: cannot remove old files from '%s'", bid_strerror(r), bid_store_path(store));
}

static void report_evictions(const struct ctl *ctl, const struct bid_evict_stats *stats, const struct aged *aged)
{
	ctl_totals(ctl, CTL_NUMBER("fetched", 0, stats->artifacts - stats->made),
		   CTL_SIZE("fetched_size", 0, stats->size - stats->made_size), CTL_NUMBER("derived", 0, stats->made),
		   CTL_SIZE("derived_size", 0, stats->made_size), CTL_SIZE("free", 0, stats->free),
		   CTL_NUMBER("evicted", 0, stats->evicted), CTL_SIZE("evicted_size", 0, stats->evicted_size),
		   CTL_NUMBER("in_use", stats->in_use ? 0 : CTL_HIDDEN, stats->in_use),
		   CTL_SIZE("in_use_size", stats->in_use ? 0 : CTL_HIDDEN, stats->in_use_size),
		   CTL_NUMBER("quarantined", aged->left.quarantined ? 0 : CTL_HIDDEN, aged->left.quarantined),
		   CTL_NUMBER("quarantined_dropped", aged->gone.quarantined ? 0 : CTL_HIDDEN, aged->gone.quarantined),
		   CTL_NUMBER("scans", aged->gone.scans ? 0 : CTL_HIDDEN, aged->left.scans),
		   CTL_NUMBER("scans_dropped", aged->gone.scans ? 0 : CTL_HIDDEN, aged->gone.scans),
		   CTL_BOOL("dry_run", ctl->dry_run));
}

/* Does the store keep its limits now? Otherwise print the difference. */
static bool are_kept(const struct bid_limits *limits, const struct bid_evict_stats *stats)
{
	uint64_t used = stats->size - stats->evicted_size, left = stats->free + stats->evicted_size;
	char size[CTL_SIZE_MAX];

	if (limits->cache_size > 0 && used > limits->cache_size)
		bid_error_about("--cache-size", 0, "cache size: %s above the limit, and gc can evict no more",
				ctl_format_size(used - limits->cache_size, size));
	else if (left < limits->min_free)
		bid_error_about("--min-free", 0, "free space: %s short of the limit, and gc can evict no more",
				ctl_format_size(limits->min_free - left, size));
	else
		return true;
	return false;
}

/* Return @size in bytes, for a file system of @total bytes. */
static uint64_t bytes_of(const struct ctl_size *size, uint64_t total)
{
	return size->percent > 0 ? (uint64_t)((double)total / 100 * size->percent) : size->bytes;
}

enum ctl_status ctl_gc(const struct ctl *ctl, int argc, char **argv)
{
	struct bid_evict_config config = {
		.dry_run = ctl->dry_run,
		.evicted = print_evicted,
		.user = (void *)ctl,
	};
	ctl_auto_store struct bid_store *store = NULL;
	struct bid_evict_stats stats = { 0 };
	struct aged aged = { 0 };
	struct statvfs fs;
	/* a dry run also works for a read-only store */
	enum ctl_status status = ctl_open_store(ctl, ctl->dry_run ? CTL_READ_ITSELF : CTL_WRITE, &store);
	int r = 0;

	if (status != CTL_DONE)
		return status;
	if (store)
		r = bid_store_statfs(store, &fs);
	if (store && r == 0) {
		uint64_t total = (uint64_t)fs.f_blocks * fs.f_frsize;

		config.limits.cache_size = bytes_of(&ctl->cache_size, total);
		config.limits.min_free = bytes_of(&ctl->min_free, total);
		forget_old(ctl, store, &aged);
		r = bid_store_evict(store, &config, &stats);
	}
	if (r < 0)
		return ctl_trouble(bid_store_path(store), r, "search the store");
	report_evictions(ctl, &stats, &aged);
	return are_kept(&config.limits, &stats) ? CTL_DONE : CTL_REFUSED;
}
