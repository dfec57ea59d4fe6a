// SPDX-License-Identifier: LGPL-2.1-or-later
/* mount.bidfs: the mount helper and the daemon of the file system. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/default_stores.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/process.h"
#include "base/world_readable.h"
#include "fuse/passthrough.h"
#include "fuse/session.h"
#include "mountpoint.h"
#include "options.h"

static int open_store(const char *path, unsigned flags, struct bid_store **ret_store)
{
	int r;

	/* a read-only store is served, too */
	r = bid_store_open(path, flags, ret_store);
	if (r == -EROFS || r == -EACCES || r == -EPERM || r == -ENOSPC || r == -EDQUOT) {
		bid_info("%s: the store '%s' is read-only: the daemon fetches nothing", strerror(-r), path);
		r = bid_store_open(path, 0, ret_store);
	}
	if (r < 0)
		bid_store_refused(r, path);
	return r;
}

/* With allow_other the mount must not let other users read files that they cannot reach below it. */
static void check_closed(const char *path, struct bid_options *options)
{
	char real[PATH_MAX], within[PATH_MAX + 1];

	if (!options->allow_other)
		return;
	if (realpath(path, real)) {
		snprintf(within, sizeof(within), "%s/", real);
		if (bid_path_is_world_searchable(within, NULL))
			return;
	}
	options->owner_only = true;
	bid_warning("'%s' is closed to other users: with 'allow_other' they see names, but read no files", path);
}

/* Does the directory @path look like a lower store? An empty one may become one. */
static bool is_tree(const char *path)
{
	bid_auto_dir DIR *dir = opendir(path);
	struct dirent *entry;
	struct bid_id id;
	bool empty = true;

	while (dir && (entry = readdir(dir))) {
		/* each cache of libdebuginfod has the last one */
		if (strcmp(entry->d_name, ".build-id") == 0 || bid_id_parse_str(entry->d_name, &id) == 0 ||
		    strcmp(entry->d_name, "cache_clean_interval_s") == 0)
			return true;
		empty &= entry->d_name[0] == '.';
	}
	return empty;
}

/*
 * Is a mount that fetches at @path? There each id has a directory. As a lower store it would make each cache hit wait for
 * servers.
 */
static bool is_fetching(const char *path)
{
	static const char nobodys[] = "62696466732d6665746368657300000000000000";
	char name[PATH_MAX];

	return snprintf(name, sizeof(name), "%s/buildid/%s", path, nobodys) < (int)sizeof(name) && access(name, F_OK) == 0;
}

static bool is_same_directory(const char *a, const char *b)
{
	struct stat st, other;

	return stat(a, &st) == 0 && stat(b, &other) == 0 && st.st_dev == other.st_dev && st.st_ino == other.st_ino;
}

/* Warn if @path is another directory than the user named, or has no store. */
static void report_lower(const char *name, const char *path)
{
	if (strcmp(name, BID_LOWER_DEBUGINFOD) != 0 && strncmp(name, path, strlen(path)) != 0)
		bid_warning("no '.build-id' in the lower store '%s': bidfs uses '%s' - name that", name, path);
	else if (strcmp(name, BID_LOWER_DEBUGINFOD) != 0 && strlen(name) > strlen(path) + 1)
		bid_warning("the lower store '%s' is a part of '%s': bidfs uses that - name it", name, path);
	else if (!is_tree(path))
		bid_warning("no '.build-id' in the lower store '%s': bidfs finds nothing there - name a directory that has one",
			    name);
}

static int add_lowers(struct bid_store *store, struct bid_options *options)
{
	bid_store_allow_links(store, (const char *const *)options->links);
	if (options->require_signed)
		bid_store_require_signed(store);
	for (char **lowers = options->lowers; lowers && *lowers; lowers++) {
		char path[PATH_MAX];
		int r = bid_store_lower_path(*lowers, path, sizeof(path));

		if (r == 0)
			continue;
		if (r > 0 && is_fetching(path)) {
			bid_error("the lower store '%s' is a mount that fetches - name it by 'url=file://%s', or name its store",
				  *lowers, path);
			return -EINVAL;
		}
		if (r > 0)
			r = bid_store_add_lower(store, path);
		if (r < 0) {
			bid_error("%s: cannot use the lower store '%s' - name a directory that you may read", strerror(-r),
				  *lowers);
			return r;
		}
		report_lower(*lowers, path);
		/* the mount shows the files below it */
		if (is_same_directory(path, options->mountpoint))
			options->nonempty = true;
		check_closed(path, options);
	}
	return 0;
}

/* Fail here if passthrough=on cannot work: the daemon has no terminal for the message. */
static int check_passthrough(const struct bid_options *options)
{
	const char *obstacle = options->passthrough == BID_PASSTHROUGH_ON ? bid_passthrough_obstacle() : NULL;

	if (obstacle)
		bid_error("%s: cannot mount with 'passthrough=on'", obstacle);
	return obstacle ? -EOPNOTSUPP : 0;
}

/* Check all but the store, whose path is @store. */
static int check_mount(struct bid_options *options, const char *store)
{
	int r = bid_mountpoint_check(options->mountpoint, store, options->nonempty, options->mountpoint);

	if (r == 0)
		r = bid_mountpoint_device();
	return r == 0 ? check_passthrough(options) : r;
}

static int mount_store(struct bid_options *options)
{
	unsigned flags = options->fake ? 0 : BID_STORE_WRITE | (options->store_named ? 0 : BID_STORE_CREATE);
	struct bid_store *store;
	int status;

	/* a mount makes the default store */
	if (options->fake && !options->store_named && access(options->store, F_OK) < 0 && errno == ENOENT)
		return check_mount(options, options->store) < 0 ? BID_EXIT_MOUNT : BID_EXIT_OK;
	if (open_store(options->store, flags, &store) < 0)
		return BID_EXIT_MOUNT;
	check_closed(bid_store_path(store), options);
	if (add_lowers(store, options) < 0 || check_mount(options, bid_store_path(store)) < 0)
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

	/* pipes and locks of the caller must not live as long as the daemon */
	close_range(3, ~0U, 0);
	if (bid_std_fds_occupy() < 0)
		return BID_EXIT_SYSTEM;
	umask(022);
	bid_log_init("mount.bidfs", BID_LOG_WARNING);
	switch (bid_options_parse(argc, argv, &options)) {
	case BID_PARSE_MOUNT:
		bid_log_init("mount.bidfs", (enum bid_log_level)options.log_level);
		status = mount_store(&options);
		break;
	case BID_PARSE_DONE:
		status = fflush(stdout) == 0 && !ferror(stdout) ? BID_EXIT_OK : BID_EXIT_SYSTEM;
		if (status != BID_EXIT_OK)
			bid_error("%s: cannot write to standard output", strerror(errno));
		break;
	case BID_PARSE_USAGE:
		break;
	}
	bid_options_release(&options);
	return status;
}
