// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl gc */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <bid/error.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

/* Quarantined files and scan results, dropped by age. */
struct aged {
	struct bid_forgotten left, gone;
};

static void evicted(void *user, const struct bid_eviction *eviction)
{
	const struct ctl *ctl = user;
	const char *kind = bid_kind_name(eviction->request.kind);
	char hex[BID_ID_HEX_MAX], size[CTL_SIZE_MAX], date[CTL_TIME_MAX];

	bid_id_format(&eviction->request.id, hex);
	if (ctl->json) {
		ctl_row(ctl, json_pack("{s:s, s:s, s:s, s:o, s:s, s:I, s:I}", "id", hex, "kind", kind, "state", "evicted", "stored",
				       ctl_json_text(eviction->path), "origin", eviction->made ? "derived" : "fetched", "size",
				       (json_int_t)eviction->size, "time", (json_int_t)eviction->last_use));
		return;
	}
	/* an unpacked file is a copy, and not the user's module */
	if (eviction->made && eviction->request.kind == BID_KIND_ELF)
		kind = "unpacked";
	if (!ctl->dry_run && !ctl->verbose)
		return;
	ctl_format_time((time_t)eviction->last_use, date);
	if (ctl_is_terminal(stdout))
		printf("%s  %-9s  %8s  %s", hex, kind, ctl_format_size(eviction->size, size), date);
	else
		printf("%s\t%s\t%" PRIu64 "\t%s", hex, kind, eviction->size, date);
	puts(ctl->dry_run ? "\twould be evicted" : "");
}

/* Drop quarantined files and scan results without a use for BID_FORGET_S. */
static void forget(const struct ctl *ctl, struct bid_store *store, struct aged *aged)
{
	int r = bid_store_forget(store, (int64_t)time(NULL) - BID_FORGET_S, ctl->dry_run, &aged->left, &aged->gone);

	if (r < 0)
		bid_warning("%s: looking for what is old in '%s'", bid_strerror(r), bid_store_path(store));
}

static void report(const struct ctl *ctl, const struct bid_evict_stats *stats, const struct aged *aged)
{
	const char *dropped = ctl->dry_run ? "would be dropped" : "dropped";
	uint64_t fetched = stats->artifacts - stats->made, fetched_size = stats->size - stats->made_size;
	char before[CTL_SIZE_MAX], made[CTL_SIZE_MAX], gone[CTL_SIZE_MAX], free_size[CTL_SIZE_MAX];

	if (ctl->json) {
		ctl_totals(ctl, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:b}", "fetched",
					  (json_int_t)fetched, "fetched_size", (json_int_t)fetched_size, "derived",
					  (json_int_t)stats->made, "derived_size", (json_int_t)stats->made_size, "free",
					  (json_int_t)stats->free, "evicted", (json_int_t)stats->evicted, "evicted_size",
					  (json_int_t)stats->evicted_size, "in_use", (json_int_t)stats->in_use, "in_use_size",
					  (json_int_t)stats->in_use_size, "quarantined", (int)aged->left.quarantined,
					  "quarantined_dropped", (int)aged->gone.quarantined, "scans", (int)aged->left.scans,
					  "scans_dropped", (int)aged->gone.scans, "dry_run", ctl->dry_run));
		return;
	}
	ctl_summary(ctl, "fetched %" PRIu64 " artifacts, %s; made %" PRIu64 ", %s; free %s; %s %" PRIu64 ", %s\n", fetched,
		    ctl_format_size(fetched_size, before), stats->made, ctl_format_size(stats->made_size, made),
		    ctl_format_size(stats->free, free_size), ctl->dry_run ? "would evict" : "evicted", stats->evicted,
		    ctl_format_size(stats->evicted_size, gone));
	if (stats->in_use > 0)
		ctl_summary(ctl, "not evicted, as they are open: %" PRIu64 ", %s\n", stats->in_use,
			    ctl_format_size(stats->in_use_size, gone));
	if (aged->left.quarantined + aged->gone.quarantined > 0)
		ctl_summary(ctl, "wrong files in quarantine: %u kept, %u %s\n", aged->left.quarantined, aged->gone.quarantined,
			    dropped);
	if (aged->gone.scans > 0)
		ctl_summary(ctl, "results of scans of trees: %u kept, %u %s\n", aged->left.scans, aged->gone.scans, dropped);
}

/* Does the store keep its limits now? Otherwise print the difference. */
static bool are_kept(const struct bid_limits *limits, const struct bid_evict_stats *stats)
{
	uint64_t used = stats->size - stats->evicted_size, left = stats->free + stats->evicted_size;
	char size[CTL_SIZE_MAX];

	if (limits->cache_size > 0 && used > limits->cache_size)
		bid_error_about("--cache-size", 0, "cache size: %s above the limit, and no more of it can be evicted",
				ctl_format_size(used - limits->cache_size, size));
	else if (left < limits->min_free)
		bid_error_about("--min-free", 0, "free space: %s short of the limit, and no more files can be evicted",
				ctl_format_size(limits->min_free - left, size));
	else
		return true;
	return false;
}

enum ctl_status ctl_gc(const struct ctl *ctl, int argc, char **argv)
{
	struct bid_evict_config config = {
		.dry_run = ctl->dry_run,
		.evicted = evicted,
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

		config.limits.cache_size = ctl_size_of(&ctl->cache_size, total);
		config.limits.min_free = ctl_size_of(&ctl->min_free, total);
		forget(ctl, store, &aged);
		r = bid_store_evict(store, &config, &stats);
	}
	if (r < 0) {
		bid_error_about(bid_store_path(store), r, "%s: looking through the store", bid_strerror(r));
		return CTL_TROUBLE;
	}
	report(ctl, &stats, &aged);
	return are_kept(&config.limits, &stats) ? CTL_DONE : CTL_REFUSED;
}
