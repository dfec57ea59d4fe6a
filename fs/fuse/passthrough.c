// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/passthrough.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "api/default_stores.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"

/* Linux 6.9; the headers may be older than libfuse */
#ifndef FUSE_DEV_IOC_BACKING_OPEN
struct fuse_backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define FUSE_DEV_IOC_BACKING_OPEN  _IOW(FUSE_DEV_IOC_MAGIC, 1, struct fuse_backing_map)
#define FUSE_DEV_IOC_BACKING_CLOSE _IOW(FUSE_DEV_IOC_MAGIC, 2, uint32_t)
#endif

static bool is_stacked(const char *path)
{
	struct statfs on;

	return statfs(path, &on) == 0 && (on.f_type == OVERLAYFS_SUPER_MAGIC || on.f_type == FUSE_SUPER_MAGIC);
}

bool bid_passthrough_stacked(const struct bid_store *store, const struct bid_options *options)
{
	char path[PATH_MAX];

	for (char **lowers = options->lowers; lowers && *lowers; lowers++)
		if (bid_store_lower_path(*lowers, path, sizeof(path)) > 0 && is_stacked(path))
			return true;
	return is_stacked(bid_store_path(store));
}

#if FUSE_USE_VERSION >= FUSE_MAKE_VERSION(3, 17)
/* CAP_SYS_ADMIN in the initial user namespace. */
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

const char *bid_passthrough_obstacle(void)
{
	return is_admin() ? NULL : "passthrough needs CAP_SYS_ADMIN";
}

bool bid_passthrough_negotiate(struct fuse_conn_info *conn, bool stacked)
{
	if (!(conn->capable & FUSE_CAP_PASSTHROUGH))
		return false;
	fuse_set_feature_flag(conn, FUSE_CAP_PASSTHROUGH);
	/* a mount with a depth of 2, the most of the kernel, cannot be stacked again */
	conn->max_backing_stack_depth = stacked;
	return true;
}

void bid_passthrough_set(struct fuse_file_info *fi, int id)
{
	fi->backing_id = id;
}
#else
const char *bid_passthrough_obstacle(void)
{
	return "built with a libfuse before 3.17, which has no passthrough";
}

bool bid_passthrough_negotiate(struct fuse_conn_info *conn, bool stacked)
{
	return false;
}

void bid_passthrough_set(struct fuse_file_info *fi, int id)
{
}
#endif

/* fuse_passthrough_open() prints each error and does not return it. */
int bid_passthrough_make_id(void *user, int fd)
{
	struct fuse_backing_map map = { .fd = fd };
	char path[BID_FD_PATH_MAX];
	struct bid_fs *fs = user;
	bid_auto_fd int again = -1;
	int id, error;

	if (fs->mode != BID_MODE_PASSTHROUGH)
		return -EOPNOTSUPP;
	/* the kernel opens the file by the rules of the sandbox: with EIO if the file was moved out of the store */
	again = open(bid_fd_path(fd, path), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (again < 0)
		return -errno;
	id = ioctl(fuse_session_fd(fs->session), FUSE_DEV_IOC_BACKING_OPEN, &map);
	if (id > 0)
		return id;
	error = id < 0 ? errno : EIO;
	if (atomic_fetch_add(&fs->refused, 1) == 0 || error != fs->refused_error)
		bid_warning("the daemon reads the files of the store, because the kernel does not: %s%s",
			    error == ELOOP ? "they lie below too many file systems: " : "", strerror(error));
	fs->refused_error = error;
	return -error;
}

/* fuse_passthrough_close() needs a request. */
void bid_passthrough_drop_id(void *user, int id)
{
	const struct bid_fs *fs = user;
	uint32_t closed = (uint32_t)id;

	if (fs->session)
		ioctl(fuse_session_fd(fs->session), FUSE_DEV_IOC_BACKING_CLOSE, &closed);
}
