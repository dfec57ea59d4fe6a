// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/process.h"
#include "fuse/ops.h"
#include "fuse/passthrough.h"
#include "fuse/request_loop.h"
#include "fuse/unmount_helper.h"
#include "sandbox/sandbox.h"
#include "servers.h"
#include "vfs/mount_names.h"

struct session {
	struct bid_fs fs;
	struct bid_servers *servers; /* owned; started after the fork; NULL without servers */
	struct bid_unmount_helper *helper; /* owned; NULL if the daemon itself unmounts */
};

/* Limits of the cached descriptors: a number, and a share of the process limit. */
enum { FDS_MAX = 8192, FDS_SHARE = 4 };

static const struct fuse_lowlevel_ops ops = {
	.init = bid_op_init,
	.lookup = bid_op_lookup,
	.forget = bid_op_forget,
	.forget_multi = bid_op_forget_multi,
	.getattr = bid_op_getattr,
	.readlink = bid_op_readlink,
	.open = bid_op_open,
	.read = bid_op_read,
	.release = bid_op_release,
	.opendir = bid_op_opendir,
	.readdir = bid_op_readdir,
	.releasedir = bid_op_releasedir,
	.statfs = bid_op_statfs,
	.getxattr = bid_op_getxattr,
	.listxattr = bid_op_listxattr,
	.setxattr = bid_op_setxattr,
	.mknod = bid_op_mknod,
	.mkdir = bid_op_mkdir,
	.symlink = bid_op_symlink,
	.create = bid_op_create,
	.link = bid_op_link,
	.rename = bid_op_rename,
	.write = bid_op_write,
	.setattr = bid_op_setattr,
	.unlink = bid_op_unlink,
	.rmdir = bid_op_rmdir,
	.flush = bid_op_flush,
	.fsync = bid_op_fsync,
};

/* Options of the mount itself. nosuid and nodev: the files belong to other people. */
static int add_arguments(struct fuse_args *args, const struct bid_options *options, const char *store, bool writable)
{
	char *list = NULL, *fsname;
	int r;

	if (asprintf(&fsname, "fsname=%s", store) < 0)
		return -ENOMEM;
	r = fuse_opt_add_arg(args, "mount.bidfs");
	if (r == 0)
		r = fuse_opt_add_opt(&list, writable ? "nosuid,nodev,subtype=bidfs" : "ro,nosuid,nodev,subtype=bidfs");
	if (r == 0)
		r = fuse_opt_add_opt_escaped(&list, fsname);
	/*
	 * Otherwise the owner is the only user. To check permissions, the kernel asks for the attributes of a directory after each
	 * change.
	 */
	if (r == 0 && options->allow_other)
		r = fuse_opt_add_opt(&list, "allow_other,default_permissions");
	if (r == 0 && options->mount_options)
		r = fuse_opt_add_opt(&list, options->mount_options);
	if (r == 0)
		r = fuse_opt_add_arg(args, "-o");
	if (r == 0)
		r = fuse_opt_add_arg(args, list);
	free(fsname);
	free(list);
	return r == 0 ? 0 : -ENOMEM;
}

/* Raise the limit of descriptors. Returns the size of the descriptor cache. */
static unsigned raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FDS_MAX / 16;
	if (limit.rlim_cur < limit.rlim_max) {
		rlim_t soft = limit.rlim_cur;

		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			limit.rlim_cur = soft;
	}
	return limit.rlim_cur / FDS_SHARE < FDS_MAX ? (unsigned)(limit.rlim_cur / FDS_SHARE) : FDS_MAX;
}

/* May a reader read the inode without an open handle? */
static bool may_be_read(void *user, uint64_t number)
{
	const struct bid_fs *fs = user;
	struct bid_inode buffer;

	return fs->mode == BID_MODE_NO_OPEN && bid_inodes_find(fs->inodes, number, &buffer);
}

static const struct bid_fd_cache_ops fd_cache_ops = {
	.make_id = bid_passthrough_make_id,
	.drop_id = bid_passthrough_drop_id,
	.may_be_read = may_be_read,
};

static int drop_descriptors(void *user, const struct stat *st)
{
	struct bid_fs *fs = user;

	return bid_fd_cache_drop(fs->fd_cache, st);
}

/* Start the gc thread of the store. */
static int keep_limits(struct bid_fs *fs)
{
	struct bid_limits limits = { .cache_size = fs->options->cache_size, .min_free = fs->options->min_free };

	bid_store_on_drop_fd(fs->store, drop_descriptors, fs);
	/* a read-only store does not grow */
	return bid_store_writable(fs->store) ? bid_store_keep_limits(fs->store, &limits) : 0;
}

/* Start the unmount helper and confine the daemon. Before any thread starts. */
static int enter_sandbox(struct session *session)
{
	struct bid_fs *fs = &session->fs;
	int r;

	if (!bid_sandbox_confines(fs->sandbox))
		return 0;
	r = bid_unmount_helper_new(fs->session, fs->options->mountpoint, &session->helper);
	return r < 0 ? r : bid_sandbox_enter(fs->sandbox);
}

/* Tell the process at the other end of the pipe @ready that the mount answers; in the foreground, print the mount point. */
static void report_mount(const struct bid_options *options, int ready)
{
	if (options->foreground) {
		printf("%s\n", options->mountpoint);
		fflush(stdout);
	} else if (write(ready, "1", 1) < 0) {
		bid_debug("%s: cannot report to the process that started the mount", strerror(errno));
	}
}

/* Start all threads, serve, and end them: all work after the fork. @ready is the pipe to the process that forked, or -1. */
static int serve_mount(struct session *session, int ready)
{
	struct bid_fs *fs = &session->fs;
	struct bid_broker_config config = {
		.wait_ms = fs->options->wait_ms,
		.max_size = fs->options->max_size,
		.prefetch = true,
		.detect_loops = true,
	};
	/* the sandbox allows no new socket */
	int manager = fs->options->foreground ? bid_notify_open() : -1;
	bool serving;
	int r;

	r = enter_sandbox(session);
	if (r == 0)
		r = bid_broker_new(fs->store, &config, &fs->broker);
	if (r == 0)
		r = keep_limits(fs);
	if (r == 0)
		r = bid_servers_start(session->servers, fs->broker);
	serving = r == 0;
	if (serving) {
		fs->tree.any_id = bid_broker_has_servers(fs->broker) && bid_store_writable(fs->store);
		if (bid_broker_has_servers(fs->broker) && !fs->tree.any_id)
			bid_warning("the store '%s' is read-only: the daemon fetches nothing", bid_store_path(fs->store));
		report_mount(fs->options, ready);
		bid_close(ready);
		bid_notify(manager, "READY=1");
		bid_close(manager);
		r = bid_request_loop_run(fs);
	} else {
		bid_error("%s: cannot serve the mount", strerror(-r));
		bid_close(ready);
		bid_close(manager);
	}
	/* answers pending requests, which need the session */
	bid_broker_free(fs->broker);
	bid_store_on_drop_fd(fs->store, NULL, NULL);
	bid_tmpfiles_end(fs->tmpfiles, serving && r == 0);
	/* a signal is the usual way to unmount */
	return serving && r >= 0 ? BID_EXIT_OK : BID_EXIT_SYSTEM;
}

/* Wait until the mount at @path answers. @ready is the pipe by which the daemon announces that. */
static int wait_for_mount(int ready, const char *path)
{
	struct stat st;
	char byte;

	if (read(ready, &byte, 1) != 1)
		return BID_EXIT_MOUNT; /* the daemon logged the cause */
	if (stat(path, &st) < 0) {
		bid_error("%s: the mount on '%s' does not answer", strerror(errno), path);
		return BID_EXIT_MOUNT;
	}
	printf("%s\n", path);
	return fflush(stdout) == 0 ? BID_EXIT_OK : BID_EXIT_SYSTEM;
}

static void daemonize(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	bid_log_to_syslog();
	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	if (chdir("/") < 0)
		bid_debug("%s: cannot leave the working directory", strerror(errno));
}

/* Serve from a child. Returns in both processes. */
static int serve_in_background(struct session *session)
{
	struct bid_fs *fs = &session->fs;
	int ready[2];
	int status;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0) {
		bid_error("%s: cannot go to the background", strerror(errno));
		return BID_EXIT_SYSTEM;
	}
	pid = fork();
	if (pid < 0) {
		bid_error("%s: cannot go to the background", strerror(errno));
		return BID_EXIT_SYSTEM;
	}
	if (pid == 0) {
		close(ready[0]);
		daemonize();
		return serve_mount(session, ready[1]);
	}
	close(ready[1]);
	/* the mount must not outlive its daemon while this process lives */
	close(fuse_session_fd(fs->session));
	status = wait_for_mount(ready[0], fs->options->mountpoint);
	close(ready[0]);
	_exit(status);
}

static int mount_and_serve(struct session *session, struct fuse_args *args)
{
	struct bid_fs *fs = &session->fs;
	int status = BID_EXIT_MOUNT;

	fs->tree.tmpfiles = fs->tmpfiles;
	fs->session = fuse_session_new(args, &ops, sizeof(ops), fs);
	if (!fs->session) {
		bid_error("cannot start: libfuse refused the options '%s'",
			  fs->options->mount_options ? fs->options->mount_options : "");
		return BID_EXIT_USAGE;
	}
	if (fuse_set_signal_handlers(fs->session) == 0) {
		if (fuse_session_mount(fs->session, fs->options->mountpoint) == 0) {
			status = fs->options->foreground ? serve_mount(session, -1) : serve_in_background(session);
			if (!session->helper)
				fuse_session_unmount(fs->session);
		} else {
			bid_error("cannot mount on '%s': see the line above", fs->options->mountpoint);
		}
		fuse_remove_signal_handlers(fs->session);
	}
	if (session->helper)
		bid_unmount_helper_end(session->helper);
	else
		fuse_session_destroy(fs->session);
	fs->session = NULL;
	return status;
}

int bid_session_run(struct bid_store *store, const struct bid_options *options)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct session session = {
		.fs = {
			.options = options,
			.store = store,
			.tree = { .store = store, .debug_view = options->debug_view },
			.writable = bid_store_writable(store) && !options->read_only,
			.stacked = bid_passthrough_stacked(store, options),
			.uid = geteuid(),
			.gid = getegid(),
		},
	};
	struct bid_fs *fs = &session.fs;
	int status = BID_EXIT_SYSTEM, r;

	clock_gettime(CLOCK_REALTIME, &fs->started);
	bid_whiteouts_init(&fs->probe_whiteouts);
	bid_whiteouts_init(&fs->link_whiteouts);
	fs->tree.probe_whiteouts = &fs->probe_whiteouts;
	fs->tree.link_whiteouts = &fs->link_whiteouts;
	bid_ratelimit_init(&fs->ratelimit, options->miss_rate, fs->uid);
	r = bid_servers_new(options, &session.servers);
	if (r == 0)
		r = bid_sandbox_new(options, store, session.servers,
				    options->passthrough != BID_PASSTHROUGH_OFF && !bid_passthrough_obstacle(), &fs->sandbox);
	if (r < 0)
		status = BID_EXIT_MOUNT;
	else if (bid_inodes_new(options->debug_view ? BID_NAMES_DEBUG : NULL, &fs->inodes) == 0 &&
		 bid_fd_cache_new(store, raise_limit(), &fd_cache_ops, fs, &fs->fd_cache) == 0 &&
		 bid_tmpfiles_new(store, &fs->probe_whiteouts, &fs->tmpfiles) == 0 &&
		 add_arguments(&args, options, bid_store_path(store), fs->writable) == 0)
		status = mount_and_serve(&session, &args);
	else
		bid_error("%s: cannot mount '%s'", strerror(ENOMEM), bid_store_path(store));

	bid_servers_free(session.servers);
	bid_sandbox_free(fs->sandbox);
	bid_tmpfiles_free(fs->tmpfiles);
	bid_fd_cache_free(fs->fd_cache);
	bid_inodes_free(fs->inodes);
	bid_ratelimit_release(&fs->ratelimit);
	bid_whiteouts_release(&fs->probe_whiteouts);
	bid_whiteouts_release(&fs->link_whiteouts);
	fuse_opt_free_args(&args);
	return status;
}
