// SPDX-License-Identifier: LGPL-2.1-or-later
#include "backing.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* An inode's attachment; protected by fs->backing_lock. */
struct backing {
	int id; /* the kernel's, while by_kernel is not 0 */
	dev_t dev; /* of the file it stands for */
	ino_t ino;
	unsigned by_kernel; /* handles that the kernel reads */
	unsigned by_us; /* handles that we read */
};

bool bid_backing_compiled(void)
{
	return true;
}

bool bid_backing_negotiate(struct fuse_conn_info *conn, unsigned stack_depth)
{
	if (!(conn->capable & FUSE_CAP_PASSTHROUGH))
		return false;
	fuse_set_feature_flag(conn, FUSE_CAP_PASSTHROUGH);
	conn->max_backing_stack_depth = stack_depth;
	return true;
}

static int open_locked(fuse_req_t req, struct bid_inode *inode, int fd, struct fuse_file_info *fi)
{
	struct backing *backing = inode->attachment;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!backing) {
		backing = calloc(1, sizeof(*backing));
		if (!backing)
			return -ENOMEM;
		inode->attachment = backing;
	}
	/* handles of one inode share one file: another one has to wait until the last of them is closed */
	if (backing->by_kernel > 0 && (backing->dev != st.st_dev || backing->ino != st.st_ino))
		return -ESTALE;
	if (backing->by_kernel == 0) {
		int id = backing->by_us ? 0 : fuse_passthrough_open(req, fd);

		if (id <= 0) {
			backing->by_us++;
			return -EOPNOTSUPP;
		}
		backing->id = id;
		backing->dev = st.st_dev;
		backing->ino = st.st_ino;
	}
	backing->by_kernel++;
	fi->backing_id = backing->id;
	return 0;
}

int bid_backing_open(fuse_req_t req, struct bid_inode *inode, int fd, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	int r;

	/* held across the registration: a second open of the inode must wait for the id of the first */
	pthread_mutex_lock(&fs->backing_lock);
	r = open_locked(req, inode, fd, fi);
	pthread_mutex_unlock(&fs->backing_lock);
	return r;
}

void bid_backing_close(struct bid_fs *fs, struct bid_inode *inode, bool by_kernel)
{
	struct backing *backing;

	pthread_mutex_lock(&fs->backing_lock);
	backing = inode->attachment;
	if (backing && !by_kernel) {
		backing->by_us--;
	} else if (backing && --backing->by_kernel == 0) {
		uint32_t id = (uint32_t)backing->id;

		/* not fuse_passthrough_close(): there may be no request any more */
		ioctl(fuse_session_fd(fs->session), FUSE_DEV_IOC_BACKING_CLOSE, &id);
	}
	pthread_mutex_unlock(&fs->backing_lock);
}

void bid_backing_detach(void *attachment)
{
	free(attachment);
}
