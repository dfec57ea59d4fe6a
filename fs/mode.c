// SPDX-License-Identifier: LGPL-2.1-or-later
/* How data gets to readers: decided once, when the kernel says what it can do. */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bid/default.h>

#include "backing.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ops.h"
#include "text.h"

static void want(struct fuse_conn_info *conn, unsigned capability)
{
	if (!(conn->capable & capability))
		return;
#if FUSE_USE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	fuse_set_feature_flag(conn, capability);
#else
	conn->want |= capability;
#endif
}

static void do_without(struct fuse_conn_info *conn, unsigned capability)
{
#if FUSE_USE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	fuse_unset_feature_flag(conn, capability);
#else
	conn->want &= ~capability;
#endif
}

/* CAP_SYS_ADMIN of the machine, not of a user namespace. */
static bool is_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	bid_auto_file FILE *map = NULL;
	unsigned inside, outside, count;

	if (syscall(SYS_capget, &header, data) < 0 || !(data[0].effective & 1U << CAP_SYS_ADMIN))
		return false;
	map = fopen("/proc/self/uid_map", "re");
	return map && fscanf(map, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 && count == UINT32_MAX;
}

static bool is_stacked(const char *path)
{
	struct statfs on;

	return statfs(path, &on) == 0 && (on.f_type == OVERLAYFS_SUPER_MAGIC || on.f_type == FUSE_SUPER_MAGIC);
}

bool bid_mode_stacked(const struct bid_store *store, const struct bid_options *options)
{
	char path[PATH_MAX];

	for (char **lowers = options->lowers; lowers && *lowers; lowers++)
		if (bid_store_lower_path(*lowers, path, sizeof(path)) > 0 && is_stacked(path))
			return true;
	return is_stacked(bid_store_path(store));
}

bool bid_uring_compiled(void)
{
	return FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18);
}

/* libfuse does not tell of interrupts there (3.18.3), and what waits keeps others of its processor waiting */
bool bid_uring_wanted(const struct bid_fs *fs)
{
	return bid_uring_compiled() && fs->options->io_uring && !bid_broker_has_sources(fs->broker);
}

/* Both sides want io_uring; the first request will tell. */
static const char uring_agreed[] = "no request has come yet";

/* Why requests will not come over io_uring. */
static const char *try_uring(const struct bid_fs *fs, struct fuse_conn_info *conn)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18)
	if (bid_uring_wanted(fs))
		return fuse_set_feature_flag(conn, FUSE_CAP_OVER_IO_URING)
			       ? uring_agreed
			       : "the kernel does not offer it: see /sys/module/fuse/parameters/enable_uring";
	/* libfuse may have been asked by the environment */
	fuse_unset_feature_flag(conn, FUSE_CAP_OVER_IO_URING);
	return fs->options->io_uring ? "there are servers to ask, and waiting for them could not be interrupted"
				     : "not asked for by the option 'io_uring'";
#else
	return "built with a libfuse before 3.18, which has no io_uring";
#endif
}

void bid_mode_heard(struct bid_fs *fs, fuse_req_t req)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18)
	const char *expected = uring_agreed, *reason = NULL;
	char *payload;
	size_t size;

	if (atomic_load_explicit(&fs->uring_reason, memory_order_relaxed) != uring_agreed)
		return;
	/* libfuse says nothing if it cannot start what it agreed to; one without liburing agrees, too */
	if (!fuse_req_is_uring(req))
		reason = fuse_req_get_payload(req, &payload, &size, NULL) == -ENOTSUP ? "libfuse was built without liburing"
										      : "libfuse could not start it";
	if (atomic_compare_exchange_strong(&fs->uring_reason, &expected, reason) && reason)
		bid_warning("no io_uring: %s", reason);
#endif
}

const char *bid_mode_obstacle(void)
{
	if (!bid_backing_compiled())
		return "built with a libfuse before 3.17, which has no passthrough";
	return is_admin() ? NULL : "passthrough needs CAP_SYS_ADMIN";
}

/* Why passthrough cannot be had; NULL if it can, and then it was asked for. */
static const char *try_passthrough(struct bid_fs *fs, struct fuse_conn_info *conn)
{
	const char *obstacle = bid_mode_obstacle();

	if (fs->options->passthrough == BID_PASSTHROUGH_OFF)
		return "switched off by passthrough=off";
	if (obstacle)
		return obstacle;
	if (!bid_backing_negotiate(conn, fs->stacked))
		return "the kernel has no passthrough (needs Linux 6.9)";
	return NULL;
}

void bid_op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct bid_fs *fs = userdata;
	const char *missing = try_passthrough(fs, conn), *uring_reason;

	want(conn, FUSE_CAP_PARALLEL_DIROPS);
	want(conn, FUSE_CAP_AUTO_INVAL_DATA);
	want(conn, FUSE_CAP_CACHE_SYMLINKS); /* see bid_notify_text() */
	/* in no_open mode nobody would hear of it */
	do_without(conn, FUSE_CAP_ATOMIC_O_TRUNC);
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2 /* libfuse 3.17 */
	/* no file here has rights that a write would have to take from it, and the kernel would ask for them before each */
	want(conn, FUSE_CAP_HANDLE_KILLPRIV_V2);
#endif
	/* a pipe in between costs more than it saves */
	do_without(conn, FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
	want(conn, FUSE_CAP_EXPORT_SUPPORT); /* for NFS: "." and ".." are looked up, see ops_name.c */
	if (!missing) {
		fs->mode = BID_MODE_PASSTHROUGH;
	} else {
		/* since Linux 5.1, and the store's openat2(2) needs 5.6 */
		want(conn, FUSE_CAP_NO_OPEN_SUPPORT);
		fs->mode = BID_MODE_NO_OPEN;
	}
	snprintf(fs->mode_reason, sizeof(fs->mode_reason), "%s", missing ? missing : "");

	uring_reason = try_uring(fs, conn);
	atomic_store(&fs->uring_reason, uring_reason);
	if (fs->options->io_uring && uring_reason != uring_agreed)
		bid_warning("no io_uring: %s", uring_reason);

	if (missing && fs->options->passthrough == BID_PASSTHROUGH_ON) {
		bid_error("%s: not mounted, because of 'passthrough=on'", missing);
		fuse_session_exit(fs->session);
		return;
	}
	bid_info("mounted '%s' on '%s', mode %s%s%s", bid_store_path(fs->store), fs->options->mountpoint, bid_mode_name(fs->mode),
		 missing ? ": " : "", missing ? missing : "");
}
