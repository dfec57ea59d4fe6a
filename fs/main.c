// SPDX-License-Identifier: LGPL-2.1-or-later
/* mount.bidfs: a mount helper, and the file system's daemon. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bid/default.h>

#include "base/log.h"
#include "base/stdio.h"
#include "mountpoint.h"
#include "options.h"
#include "session.h"

static int open_store(const char *path, unsigned flags, struct bid_store **ret_store)
{
	int r;

	/* what is fetched goes into the store; where nothing can be written, what is there is served all the same */
	r = bid_store_open(path, flags, ret_store);
	if (r == -EROFS || r == -EACCES || r == -EPERM || r == -ENOSPC || r == -EDQUOT) {
		bid_info("%s: nothing will be fetched into the store '%s', which cannot be written", strerror(-r), path);
		r = bid_store_open(path, 0, ret_store);
	}
	if (r == -ENOENT)
		bid_error("no such store: '%s': create it with 'mkdir -p %s', or name another", path, path);
	else if (r == -ENOTDIR)
		bid_error("not a directory: '%s': name a build-id cache directory, as perf's ~/.debug", path);
	else if (r == -EACCES)
		bid_error("permission denied: '%s': let its owner give you the right to read it, or name another store", path);
	else if (r == -ENOTCONN || r == -ECONNABORTED)
		bid_error("a file system whose daemon died is on the store '%s': remove it with 'umount -l %s'", path, path);
	else if (r == -ENOSYS)
		bid_error("no openat2(2), for the store '%s': it needs Linux 5.6, and no filter of system calls that refuses it",
			  path);
	else if (r < 0)
		bid_error("%s: cannot open the store '%s': name another", strerror(-r), path);
	return r;
}

/* With allow_other, others must not get through the mount at what they cannot get at below it. */
static void check_way(const char *path, struct bid_options *options)
{
	if (!options->allow_other || bid_path_is_open(path))
		return;
	bid_warning("'%s' is not open to others: with 'allow_other' they see the names, and only the owner and root read the files",
		    path);
	options->owner_only = true;
}

static int add_lowers(struct bid_store *store, struct bid_options *options)
{
	for (char **lowers = options->lowers; lowers && *lowers; lowers++) {
		char path[PATH_MAX];
		int r = bid_store_lower_path(*lowers, path, sizeof(path));

		if (r == 0)
			continue;
		if (r > 0)
			r = bid_store_add_lower(store, path);
		if (r < 0) {
			bid_error("%s: cannot use the lower store '%s': name a directory that you may read", strerror(-r), *lowers);
			return r;
		}
		check_way(path, options);
	}
	return 0;
}

static int run(struct bid_options *options)
{
	unsigned flags = options->fake ? 0 : BID_STORE_WRITE | (options->store_named ? 0 : BID_STORE_CREATE);
	struct bid_store *store;
	int status;

	if (open_store(options->store, flags, &store) < 0)
		return BID_EXIT_MOUNT;
	check_way(bid_store_path(store), options);
	if (add_lowers(store, options) < 0 ||
	    bid_mountpoint_check(options->mountpoint, bid_store_path(store), options->nonempty, options->mountpoint) < 0 ||
	    bid_mountpoint_device() < 0)
		status = BID_EXIT_MOUNT;
	else if (options->fake)
		status = BID_EXIT_OK;
	else
		status = bid_session_run(store, options);
	bid_store_free(store);
	return status;
}

int main(int argc, char **argv)
{
	struct bid_options options;
	int status = BID_EXIT_USAGE;

	/* a caller's pipes and locks must not live as long as the daemon */
	close_range(3, ~0U, 0);
	if (bid_stdio_occupy() < 0)
		return BID_EXIT_SYSTEM;
	umask(022);
	bid_log_init("mount.bidfs", BID_LOG_WARNING);
	switch (bid_options_parse(argc, argv, &options)) {
	case BID_PARSE_MOUNT:
		bid_log_init("mount.bidfs", (enum bid_log_level)options.log_level);
		status = run(&options);
		break;
	case BID_PARSE_DONE:
		status = fflush(stdout) == 0 && !ferror(stdout) ? BID_EXIT_OK : BID_EXIT_SYSTEM;
		if (status != BID_EXIT_OK)
			bid_error("%s: standard output", strerror(errno));
		break;
	case BID_PARSE_USAGE:
		break;
	}
	bid_options_release(&options);
	return status;
}
