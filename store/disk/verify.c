// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checking a store: the order of the passes, and how findings are told. */
#include "disk/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "disk/root.h"
#include "disk/store.h"

const char *bid_finding_name(enum bid_finding_kind kind)
{
	static const char *const names[] = {
		[BID_FINDING_WRONG] = "wrong",		 [BID_FINDING_CORRUPT] = "corrupt",
		[BID_FINDING_UNREADABLE] = "unreadable", [BID_FINDING_ORPHAN] = "orphan",
		[BID_FINDING_EMPTY] = "empty",		 [BID_FINDING_DANGLING] = "dangling",
		[BID_FINDING_ASTRAY] = "astray",	 [BID_FINDING_FOREIGN_LINK] = "foreign-link",
		[BID_FINDING_TEMP] = "temporary",	 [BID_FINDING_RECORD] = "record",
		[BID_FINDING_STALE] = "stale",
	};

	return (unsigned)kind < BID_FINDING_COUNT ? names[kind] : "unknown";
}

bool bid_verify_wants(const struct bid_verify *verify, const struct bid_id *filed)
{
	return !verify->config->ids || bid_idset_find(&verify->wanted, filed);
}

int bid_verify_found(struct bid_verify *verify, const struct bid_finding *finding)
{
	const struct bid_verify_config *config = verify->config;

	verify->stats.found[finding->kind]++;
	if (!finding->repaired)
		verify->stats.left++;
	return config->found ? config->found(config->user, finding) : 0;
}

int bid_verify_progress(struct bid_verify *verify)
{
	const struct bid_verify_config *config = verify->config;

	return config->progress ? config->progress(config->user, &verify->stats) : 0;
}

static int visit_entry(void *user, const struct bid_place_of *entry)
{
	return bid_verify_entry(user, entry);
}

static int visit_adoptable(void *user, const struct bid_place_of *entry)
{
	return bid_verify_adopt(user, entry);
}

static int visit_foreign(void *user, const char *path)
{
	struct bid_verify *verify = user;

	verify->stats.foreign++;
	return 0;
}

/* perf's copying takes seconds: what is older than this was left behind. */
enum { ABANDONED_S = 3600 };

static int visit_temp(void *user, const char *path)
{
	struct bid_verify *verify = user;
	struct bid_finding finding = { .kind = BID_FINDING_TEMP, .path = path, .text = "left behind by perf" };
	struct stat st;

	if (verify->config->ids || bid_root_stat(bid_store_root(verify->store), path, &st) < 0 ||
	    st.st_ctim.tv_sec + ABANDONED_S > time(NULL))
		return 0;
	finding.repaired = verify->config->repair && bid_entry_unlink(verify->store, path) == 0;
	return bid_verify_found(verify, &finding);
}

static int run(struct bid_verify *verify)
{
	struct bid_visitor all = { .entry = visit_entry, .temp = visit_temp, .foreign = visit_foreign, .user = verify };
	struct bid_visitor adoptable = { .entry = visit_adoptable, .user = verify };
	/* links first: who lost a link that led elsewhere is an orphan then, and is adopted */
	int r = bid_verify_links(verify);

	if (r == 0)
		r = bid_entries_each(verify->store, &all);
	verify->again = true;
	if (r == 0 && verify->unlinked)
		r = bid_entries_each(verify->store, &adoptable);
	/* last, because a record stands for an object that is left */
	if (r == 0)
		r = bid_idset_init(&verify->orphaned, verify->orphans, verify->n_orphans);
	if (r == 0)
		r = bid_verify_own(verify);
	return r;
}

int bid_store_verify(struct bid_store *store, const struct bid_verify_config *config, struct bid_verify_stats *ret_stats)
{
	struct bid_verify verify = { .store = store, .config = config };
	int r;

	if (config->repair && !bid_store_writable(store))
		return -EROFS;
	r = bid_idset_init(&verify.wanted, config->ids, config->n_ids);
	if (r == 0)
		r = run(&verify);
	bid_idset_release(&verify.wanted);
	bid_idset_release(&verify.orphaned);
	free(verify.orphans);
	if (r == 0)
		*ret_stats = verify.stats;
	return r;
}
