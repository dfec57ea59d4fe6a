// SPDX-License-Identifier: LGPL-2.1-or-later
/* Verify a store: the order of the passes, and the threads. */
#include "disk/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "disk/beneath.h"
#include "disk/dirwalk.h"
#include "disk/layout.h"
#include "disk/store.h"

enum {
	JOBS_MAX = 256,
	FDS = 2 * BID_VERIFY_FANOUT,
};

const char *bid_finding_name(enum bid_finding_kind kind)
{
	static const char *const names[] = {
		[BID_FINDING_WRONG] = "wrong",
		[BID_FINDING_CORRUPT] = "corrupt",
		[BID_FINDING_UNREADABLE] = "unreadable",
		[BID_FINDING_RIGHTS] = "rights",
		[BID_FINDING_ORPHAN] = "orphan",
		[BID_FINDING_EMPTY] = "empty",
		[BID_FINDING_DANGLING] = "dangling",
		[BID_FINDING_MISMATCHED] = "mismatched",
		[BID_FINDING_FOREIGN_LINK] = "foreign-link",
		[BID_FINDING_TEMP] = "temporary",
		[BID_FINDING_RECORD] = "record",
		[BID_FINDING_STALE] = "stale",
		[BID_FINDING_ALTERED] = "altered",
	};

	return (unsigned)kind < BID_FINDING_COUNT ? names[kind] : "unknown";
}

static int visit_foreign(void *user, const char *path)
{
	struct bid_verify *verify = user;

	verify->stats.foreign++;
	return 0;
}

static int visit_unread(void *user, const char *path, int error)
{
	struct bid_verify *verify = user;
	struct bid_finding finding = { .kind = BID_FINDING_UNREADABLE, .path = path, .text = bid_strerror(error) };

	atomic_store(&verify->shared->blind, true);
	return verify->again ? 0 : bid_verify_found(verify, &finding);
}

/* perf copies within seconds: an older file was left behind */
enum { ABANDONED_S = 3600 };

static int visit_temp(void *user, const char *path)
{
	struct bid_verify *verify = user;
	struct bid_finding finding = { .kind = BID_FINDING_TEMP, .path = path, .text = "left behind by perf" };
	struct stat st;

	if (verify->config->ids || bid_beneath_stat(verify->store->root, path, &st) < 0 ||
	    st.st_ctim.tv_sec + ABANDONED_S > time(NULL))
		return 0;
	finding.repaired = verify->config->repair && bid_beneath_unlink(verify->store->root, path) == 0;
	return bid_verify_found(verify, &finding);
}

/* the threads of a check, each with its own state */
struct team {
	struct bid_verify *members; /* the first is the caller's thread */
	unsigned n;
};

struct task {
	struct bid_verify *member;
	int (*part)(struct bid_verify *member);
	pthread_t thread;
};

static void *run_task(void *user)
{
	const struct task *task = user;

	bid_verify_end(task->member, task->part(task->member));
	return NULL;
}

/* Run @part in all threads. Returns the result that ended it. */
static int run_together(struct team *team, int (*part)(struct bid_verify *member))
{
	bid_auto_free struct task *tasks = calloc(team->n, sizeof(*tasks));
	unsigned started = 1;

	if (!tasks)
		return -ENOMEM;
	for (; started < team->n; started++) {
		struct task *task = &tasks[started];

		*task = (struct task){ .member = &team->members[started], .part = part };
		if (bid_thread_start(&task->thread, "bid-verify", run_task, task) < 0)
			break;
	}
	bid_verify_end(&team->members[0], part(&team->members[0]));
	/* those without a thread */
	for (unsigned i = started; i < team->n; i++)
		bid_verify_end(&team->members[i], part(&team->members[i]));
	for (unsigned i = 1; i < started; i++)
		pthread_join(tasks[i].thread, NULL);
	return atomic_load(&team->members[0].shared->ended);
}

static int names_part(struct bid_verify *verify)
{
	struct bid_visitor all = {
		.entry = bid_verify_entry, .temp = visit_temp, .foreign = visit_foreign, .unread = visit_unread, .user = verify
	};

	return bid_dirwalk_work(verify->shared->walk, &all);
}

static int check_names(struct team *team)
{
	struct bid_verify_common *shared = team->members[0].shared;
	int r = bid_objdirs_walk(team->members[0].store, &shared->walk);

	if (r < 0)
		return r;
	r = run_together(team, names_part);
	bid_dirwalk_free(shared->walk);
	return r;
}

/* Check the names first: most links lead to one of them, and then need no further check. */
static int check_only(struct team *team)
{
	int r = check_names(team);

	return r == 0 ? run_together(team, bid_verify_links) : r;
}

static int check_in_turn(struct bid_verify *verify)
{
	struct bid_visitor adoptable = { .entry = bid_verify_adopt, .unread = visit_unread, .user = verify };
	struct team alone = { .members = verify, .n = 1 };
	/* links first: a name whose link led elsewhere becomes an orphan, and is adopted */
	int r = bid_verify_links(verify);

	if (r == 0)
		r = check_names(&alone);
	/* the second pass finds correct files under another name, in place of files in the quarantine */
	verify->again = true;
	if (r == 0 && verify->unlinked)
		r = bid_objdirs_each(verify->store, &adoptable);
	return r;
}

static int check_store(struct team *team)
{
	struct bid_verify *first = &team->members[0];
	int r = first->config->repair ? check_in_turn(first) : check_only(team);

	/* last, because a record counts only with its object */
	if (r == 0)
		r = run_together(team, bid_verify_private);
	return r == 0 ? bid_verify_private_rest(first) : r;
}

/*
 * Enlarge the table of descriptors before the threads of the check start. Later, the kernel waits for all CPUs each time that the
 * table grows, 10 ms or more.
 */
static void reserve_fds(int fd)
{
	bid_close(fcntl(fd, F_DUPFD_CLOEXEC, FDS - 1));
}

static int run_check(struct team *team, struct bid_verify_stats *ret_stats)
{
	int r = check_store(team);

	for (unsigned i = 0; i < team->n; i++) {
		bid_verify_count(&team->members[i]);
		free(team->members[i].buffer);
	}
	if (r == 0)
		*ret_stats = team->members[0].shared->reported;
	return r;
}

/* Repair in one thread: another thread could check a file while it is repaired. */
static unsigned jobs_of(const struct bid_verify_config *config)
{
	unsigned jobs = config->jobs ? config->jobs : bid_cpus();

	return config->repair ? 1 : jobs < JOBS_MAX ? jobs : JOBS_MAX;
}

int bid_store_verify(struct bid_store *store, const struct bid_verify_config *config, struct bid_verify_stats *ret_stats)
{
	bid_auto_free struct bid_verify_common *shared = calloc(1, sizeof(*shared));
	struct team team = { .n = jobs_of(config) };
	bid_auto_free struct bid_verify *members = calloc(team.n, sizeof(*members));
	struct bid_idset wanted = { 0 };
	struct stat st;
	int r;

	if (config->repair && !bid_store_writable(store))
		return -EROFS;
	if (!shared || !members)
		return -ENOMEM;
	r = bid_idset_init(&wanted, config->ids, config->n_ids);
	if (r < 0)
		return r;
	pthread_mutex_init(&shared->lock, NULL);
	for (unsigned i = 0; i < BID_VERIFY_FANOUT; i++)
		shared->fanouts[i] = -1;
	shared->recorded = bid_beneath_stat(store->root, BID_LAYOUT_PRIVATE, &st) == 0;
	shared->workers = team.n;
	team.members = members;
	for (unsigned i = 0; i < team.n; i++)
		members[i] =
			(struct bid_verify){ .store = store, .config = config, .shared = shared, .worker = i, .wanted = &wanted };
	reserve_fds(store->root);
	r = run_check(&team, ret_stats);
	for (unsigned i = 0; i < BID_VERIFY_FANOUT; i++)
		bid_close(shared->fanouts[i]);
	pthread_mutex_destroy(&shared->lock);
	bid_idset_release(&wanted);
	return r;
}
