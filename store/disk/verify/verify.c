// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checking a store: the order of the passes, and how findings are told. */
#include "disk/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "disk/layout.h"
#include "disk/root.h"
#include "disk/store.h"

enum { FANS = 256 };

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

/* What a callback said, kept for the other pass. */
static int called(struct bid_verify *verify, int r)
{
	if (r != 0)
		atomic_store(&verify->calls->ended, r);
	return r;
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
	pthread_mutex_lock(&verify->calls->lock);
	r = atomic_load(&verify->calls->ended);
	if (r == 0)
		r = called(verify, config->found(config->user, finding));
	pthread_mutex_unlock(&verify->calls->lock);
	return r;
}

int bid_verify_progress(struct bid_verify *verify)
{
	const struct bid_verify_config *config = verify->config;
	int r = atomic_load_explicit(&verify->calls->ended, memory_order_relaxed);

	if (r != 0 || !config->progress || verify->silent)
		return r;
	pthread_mutex_lock(&verify->calls->lock);
	r = called(verify, config->progress(config->user, &verify->stats));
	pthread_mutex_unlock(&verify->calls->lock);
	return r;
}

int bid_verify_fan(struct bid_verify *verify, const struct bid_id *filed)
{
	int *fan = &verify->fans[filed->bytes[0]];
	char path[sizeof(BID_LAYOUT_LINKS) + 4];

	if (*fan >= 0)
		return *fan;
	snprintf(path, sizeof(path), BID_LAYOUT_LINKS "/%02x", filed->bytes[0]);
	return bid_root_open(bid_store_root(verify->store), path, O_PATH | O_DIRECTORY, fan) < 0 ? -ENOENT : *fan;
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

/* A pass of its own of the same check. */
static int begin(struct bid_verify *pass)
{
	pass->fans = malloc(FANS * sizeof(*pass->fans));
	if (!pass->fans)
		return -ENOMEM;
	for (unsigned i = 0; i < FANS; i++)
		pass->fans[i] = -1;
	return 0;
}

static void end(struct bid_verify *pass)
{
	for (unsigned i = 0; pass->fans && i < FANS; i++)
		bid_close(pass->fans[i]);
	free(pass->fans);
	free(pass->orphans);
	bid_idset_release(&pass->orphaned);
}

static void *check_links(void *user)
{
	struct bid_verify *links = user;
	int r = bid_verify_links(links);

	if (r != 0)
		atomic_store(&links->calls->ended, r);
	return NULL;
}

static int check_names(struct bid_verify *verify)
{
	struct bid_visitor all = { .entry = visit_entry, .temp = visit_temp, .foreign = visit_foreign, .user = verify };

	return bid_entries_each(verify->store, &all);
}

/* Both at a time, each by a thread. Where nothing is repaired they have nothing to do with each other. */
static int check_both(struct bid_verify *verify)
{
	struct bid_verify links = *verify;
	sigset_t all, before;
	pthread_t thread;
	int r, ended;

	links.silent = true;
	r = begin(&links);
	if (r < 0)
		return r;
	/* signals are for the program's own threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread, NULL, check_links, &links);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		check_links(&links);
		r = check_names(verify);
	} else {
		r = check_names(verify);
		if (r != 0)
			atomic_store(&verify->calls->ended, r);
		pthread_join(thread, NULL);
	}
	ended = atomic_load(&verify->calls->ended);
	verify->stats.links += links.stats.links;
	verify->stats.objects += links.stats.objects;
	verify->stats.bytes += links.stats.bytes;
	verify->stats.digests += links.stats.digests;
	verify->stats.foreign += links.stats.foreign;
	verify->stats.left += links.stats.left;
	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		verify->stats.found[kind] += links.stats.found[kind];
	end(&links);
	return r != 0 ? r : ended;
}

static int check_in_turn(struct bid_verify *verify)
{
	struct bid_visitor adoptable = { .entry = visit_adoptable, .user = verify };
	/* links first: who lost a link that led elsewhere is an orphan then, and is adopted */
	int r = bid_verify_links(verify);

	if (r == 0)
		r = check_names(verify);
	verify->again = true;
	if (r == 0 && verify->unlinked)
		r = bid_entries_each(verify->store, &adoptable);
	return r;
}

static int run(struct bid_verify *verify)
{
	int r = verify->config->repair ? check_in_turn(verify) : check_both(verify);

	/* last, because a record stands for an object that is left */
	if (r == 0)
		r = bid_idset_init(&verify->orphaned, verify->orphans, verify->n_orphans);
	if (r == 0)
		r = bid_verify_own(verify);
	return r;
}

int bid_store_verify(struct bid_store *store, const struct bid_verify_config *config, struct bid_verify_stats *ret_stats)
{
	struct bid_verify_calls calls = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct bid_verify verify = { .store = store, .config = config, .calls = &calls };
	int r;

	if (config->repair && !bid_store_writable(store))
		return -EROFS;
	r = begin(&verify);
	if (r == 0)
		r = bid_idset_init(&verify.wanted, config->ids, config->n_ids);
	if (r == 0)
		r = run(&verify);
	bid_idset_release(&verify.wanted);
	end(&verify);
	pthread_mutex_destroy(&calls.lock);
	if (r == 0)
		*ret_stats = verify.stats;
	return r;
}
