// SPDX-License-Identifier: LGPL-2.1-or-later
/* A scan: workers walk the tree and examine its files; the calling thread finishes each file. */
#include "disk/scan/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/access.h"
#include "base/cleanup.h"
#include "base/cpus.h"
#include "base/log.h"
#include "base/mount.h"
#include "base/thread.h"
#include "disk/beneath.h"
#include "disk/dirs.h"
#include "disk/store.h"

enum { JOBS_MAX = 256 };

static bool is_bidfs(const struct bid_scan *scan, dev_t dev)
{
	for (size_t i = 0; i < scan->n_mounts; i++)
		if (scan->mounts[i] == dev)
			return true;
	return false;
}

/* Is @fd on a file system with generated, perhaps endless, files? */
static bool is_made_up(int fd)
{
	static const long magics[] = {
		PROC_SUPER_MAGIC,    SYSFS_MAGIC,    DEBUGFS_MAGIC,	 TRACEFS_MAGIC,	   CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,   DEVPTS_SUPER_MAGIC, SECURITYFS_MAGIC, SELINUX_MAGIC,
		PSTOREFS_MAGIC,	     EFIVARFS_MAGIC, NSFS_MAGIC,	 BINFMTFS_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if ((long)fs.f_type == magics[i])
			return true;
	return false;
}

static int enter_directory(void *user, const char *path, int fd, uint64_t *note, bool *ret_enter)
{
	const struct bid_scan *scan = ((const struct bid_scan_worker *)user)->scan;
	struct stat st;

	if (fstat(fd, &st) < 0 || (st.st_ino == scan->store_ino && st.st_dev == scan->store_dev))
		return 0;
	*note = *note || !bid_all_pass(fd, &st);
	*ret_enter = st.st_dev == scan->dev || (scan->config->cross && !is_bidfs(scan, st.st_dev) && !is_made_up(fd));
	return 0;
}

static int push_error(void *user, const char *path, int error)
{
	const struct bid_scan *scan = ((const struct bid_scan_worker *)user)->scan;
	struct bid_settling *settling = bid_scan_is_fatal(error) ? NULL : bid_settling_new(path, "");

	if (!settling)
		return bid_scan_is_fatal(error) ? error : -ENOMEM;
	settling->error = error;
	bid_settle_push(scan->settle, settling);
	return 0;
}

static int count_settled(void *user, const struct bid_settling *settling)
{
	struct bid_scan *scan = user;
	struct bid_scan_file file = { .path = settling->path, .error = settling->error, .added = settling->added };
	int r = 0;

	if (settling->error < 0)
		scan->counts.refused++;
	else if (settling->added.known)
		scan->counts.known++;
	else
		scan->counts.added++;
	if (settling->keep && settling->error == 0)
		r = bid_scan_found_add(
			&scan->settled, &settling->key,
			&(struct bid_scan_result){ .what = BID_SCAN_KNOWN, .kind = settling->added.kind, .id = settling->added.id },
			true);
	return r == 0 && scan->config->file ? scan->config->file(scan->config->user, &file) : r;
}

static void sum_counts(struct bid_scan *scan)
{
	scan->counts.seen = scan->counts.recalled = 0;
	for (unsigned i = 0; i < scan->jobs; i++) {
		scan->counts.seen += atomic_load_explicit(&scan->workers[i].seen, memory_order_relaxed);
		scan->counts.recalled += atomic_load_explicit(&scan->workers[i].recalled, memory_order_relaxed);
	}
}

static void report_progress(void *user)
{
	struct bid_scan *scan = user;
	int r;

	if (!scan->config->progress)
		return;
	sum_counts(scan);
	r = scan->config->progress(scan->config->user, &scan->counts);
	if (r != 0)
		bid_walk_end(scan->walk, r);
}

static const struct bid_walk_ops walk_ops = { .enter = enter_directory, .file = bid_scan_one, .trouble = push_error };
static const struct bid_settle_ops settle_ops = { .settled = count_settled, .tick = report_progress };

static void end_walk(void *user, int error)
{
	struct bid_scan *scan = user;

	bid_walk_end(scan->walk, error);
}

static void *run_worker(void *user)
{
	struct bid_scan_worker *worker = user;

	bid_walk_work(worker->scan->walk, worker);
	bid_settle_worker_ends(worker->scan->settle);
	return NULL;
}

/* Run the workers, and finish files until the workers have ended. */
static int run_scan(struct bid_scan *scan)
{
	unsigned started = 0;
	int r = 0, settling;

	for (; started < scan->jobs; started++) {
		struct bid_scan_worker *worker = &scan->workers[started];

		*worker = (struct bid_scan_worker){ .scan = scan };
		r = bid_thread_start(&worker->thread, "bid-scan", run_worker, worker);
		if (r < 0)
			break;
	}
	if (started > 0)
		r = 0; /* fewer do, too */
	for (unsigned i = started; i < scan->jobs; i++)
		bid_settle_worker_ends(scan->settle);
	settling = bid_settle_run(scan->settle, end_walk, scan);
	for (unsigned i = 0; i < started; i++)
		pthread_join(scan->workers[i].thread, NULL);
	if (r == 0)
		r = settling;
	/* all workers return the result that ended the dirwalk */
	return r != 0 ? r : bid_walk_work(scan->walk, &scan->workers[0]);
}

/* Save the results. A failure only makes the next scan slower. */
static void save_results(struct bid_scan *scan, const char *path)
{
	bid_auto_free struct bid_scan_found *found = calloc(scan->jobs + 1, sizeof(*found));
	int r = -ENOMEM;

	if (found) {
		for (unsigned i = 0; i < scan->jobs; i++)
			found[i] = scan->workers[i].found;
		found[scan->jobs] = scan->settled;
		r = bid_scan_cache_save(scan->store, scan->cache, found, scan->jobs + 1);
	}
	if (r < 0)
		bid_info("%s: what was found in '%s' is not kept for the next scan", strerror(-r), path);
}

/* Open the root of the tree. @ret_path is its real path. */
static int open_tree(struct bid_scan *scan, const char *path, int *ret_fd, char **ret_path)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	bid_auto_free char *real = fd >= 0 ? realpath(path, NULL) : NULL;
	size_t len = strlen(bid_store_path(scan->store));
	struct stat st, store;
	int r;

	if (!real || fstat(fd, &st) < 0 || fstat(bid_store_root(scan->store), &store) < 0)
		return -errno;
	/* reading their files would fetch them, and would add them from the store to the store */
	r = bid_mount_devices(&scan->mounts, &scan->n_mounts);
	if (r < 0)
		return r;
	/* the store or a directory in it: its files have other original paths */
	if (is_bidfs(scan, st.st_dev) ||
	    (strncmp(real, bid_store_path(scan->store), len) == 0 && (real[len] == '\0' || real[len] == '/')))
		return -ELOOP;
	scan->dev = st.st_dev;
	scan->store_dev = store.st_dev;
	scan->store_ino = store.st_ino;
	*ret_fd = bid_steal_fd(&fd);
	*ret_path = bid_steal(real);
	return 0;
}

static void release_scan(struct bid_scan *scan)
{
	for (unsigned i = 0; scan->workers && i < scan->jobs; i++)
		bid_scan_found_release(&scan->workers[i].found);
	free(scan->workers);
	bid_scan_found_release(&scan->settled);
	bid_walk_free(scan->walk);
	bid_settle_free(scan->settle);
	bid_scan_cache_free(scan->cache);
	free(scan->mounts);
	pthread_mutex_destroy(&scan->clean_lock);
}

int bid_store_scan(struct bid_store *store, const char *path, const struct bid_scan_config *config,
		   struct bid_scan_counts *ret_counts)
{
	struct bid_scan scan = { .store = store, .config = config, .clean_lock = PTHREAD_MUTEX_INITIALIZER };
	bid_auto_free char *real = NULL;
	bid_auto_fd int fd = -1;
	char below[PATH_MAX + 1];
	int r;

	*ret_counts = scan.counts;
	if (!bid_store_writable(store))
		return -EROFS;
	scan.jobs = config->jobs ? config->jobs : bid_cpus();
	if (scan.jobs > JOBS_MAX)
		scan.jobs = JOBS_MAX;
	scan.privileged = geteuid() == 0;
	scan.workers = aligned_alloc(_Alignof(struct bid_scan_worker), scan.jobs * sizeof(*scan.workers));
	if (!scan.workers)
		return -ENOMEM;
	memset(scan.workers, 0, scan.jobs * sizeof(*scan.workers));

	r = open_tree(&scan, path, &fd, &real);
	if (r == 0)
		r = bid_scan_cache_load(store, real, config->forget, &scan.cache);
	if (r == 0)
		r = bid_settle_new(store, scan.jobs, &settle_ops, &scan, &scan.settle);
	if (r == 0) {
		snprintf(below, sizeof(below), "%s/", real);
		r = bid_walk_new(bid_steal_fd(&fd), strcmp(real, "/") == 0 ? "" : real,
				 !bid_all_get_to(below, bid_store_path(store)), &walk_ops, &scan.walk);
	}
	if (r == 0) {
		bid_dirs_keep(store);
		r = run_scan(&scan);
		bid_dirs_drop(store);
	}
	if (r == 0)
		save_results(&scan, real);
	sum_counts(&scan);
	*ret_counts = scan.counts;
	release_scan(&scan);
	return r;
}
