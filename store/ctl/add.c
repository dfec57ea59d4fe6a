// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl add */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include <bid/error.h>

#include "base/log.h"
#include "ctl/add.h"

/* A scan keeps a directory open for each level it is below, in each thread, and files that wait to be synced. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int scanned(void *user, const struct bid_scan_file *file)
{
	struct ctl_tally *tally = user;

	if (file->error < 0)
		ctl_tally_refused(tally, file->path, ctl_add_reason(file->error, tally->ctl->link), false);
	else
		ctl_tally_taken(tally, file->path, &file->added);
	return 0;
}

static void show_progress(void *user, const struct bid_scan_counts *counts)
{
	ctl_tally_progress(user, counts->seen);
}

static int add_tree(struct ctl_tally *tally, struct bid_store *store, const char *path)
{
	struct bid_scan_config config = {
		.jobs = tally->ctl->jobs,
		.cross = tally->ctl->cross,
		.link = tally->ctl->link,
		.file = scanned,
		.progress = show_progress,
		.user = tally,
	};
	struct bid_scan_counts counts;
	int r = bid_store_scan(store, path, &config, &counts);

	ctl_progress_clear(&tally->progress);
	tally->seen += counts.seen;
	return r;
}

static int add_file(struct ctl_tally *tally, struct bid_store *store, const char *path)
{
	struct bid_added added;
	int r = bid_store_add(store, path, tally->ctl->link, &added);

	tally->seen++;
	if (r == 0)
		ctl_tally_taken(tally, path, &added);
	return r;
}

/* One operand. */
static enum ctl_status add(struct ctl_tally *tally, struct bid_store *store, const char *path)
{
	struct stat st;
	int r;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		r = add_tree(tally, store, path);
	else
		r = add_file(tally, store, path);
	if (r == 0)
		return CTL_DONE;
	ctl_tally_refused(tally, path, ctl_add_reason(r, tally->ctl->link), true);
	return ctl_add_is_refusal(r) ? CTL_REFUSED : CTL_TROUBLE;
}

static enum ctl_status add_whole_kernel(struct ctl_tally *tally, struct bid_store *store)
{
	/* what runs comes with everything else that does */
	int r = tally->ctl->running ? 0 : ctl_add_kernel(tally, store);

	if (r == 0)
		r = ctl_add_kernel_files(tally, store);
	if (r == 0)
		return CTL_DONE;
	bid_error("%s: adding the kernel to '%s'", strerror(-r), bid_store_path(store));
	return CTL_TROUBLE;
}

enum ctl_status ctl_add(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	struct ctl_tally tally;
	enum ctl_status status;

	if (ctl->fetch && !ctl->perf_data)
		return ctl_usage("'--fetch' needs '--perf-data'");
	if (ctl->n_urls > 0 && !ctl->fetch)
		return ctl_usage("'--url' needs '--fetch'");
	if (ctl->perf_data && (argc > 0 || ctl->running || ctl->kernel || ctl->files_from))
		return ctl_usage("'--perf-data' takes nothing beside: '%s'", argc > 0	    ? argv[0]
									     : ctl->running ? "--running"
									     : ctl->kernel  ? "--kernel"
											    : "--files-from");
	if (ctl->perf_data)
		return ctl_add_perf_data(ctl);
	if (argc == 0 && !ctl->running && !ctl->kernel && !ctl->files_from)
		return ctl_usage("'add' needs FILE|DIR..., '--running', '--kernel', '--files-from' or '--perf-data'");
	status = ctl_open_store(ctl, CTL_WRITE, &store);
	if (status != CTL_DONE)
		return status;
	allow_many_files();
	ctl_tally_begin(&tally, ctl, CTL_TALLY_WHOLE);

	if (ctl->running)
		status = ctl_add_running(&tally, store);
	if (ctl->kernel && status == CTL_DONE)
		status = add_whole_kernel(&tally, store);
	if (ctl->files_from && status == CTL_DONE)
		status = ctl_add_listed(&tally, store, ctl->files_from);
	for (int i = 0; i < argc && status != CTL_TROUBLE; i++) {
		enum ctl_status one = add(&tally, store, argv[i]);

		if (one != CTL_DONE)
			status = one;
	}
	return ctl_tally_end(&tally, status);
}
