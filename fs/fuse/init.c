// SPDX-License-Identifier: LGPL-2.1-or-later
/* FUSE_INIT: how readers get data, and what the kernel caches. */
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "fuse/ops.h"
#include "fuse/passthrough.h"

static void want_capability(struct fuse_conn_info *conn, unsigned capability)
{
	if (!(conn->capable & capability))
		return;
#if FUSE_USE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	fuse_set_feature_flag(conn, capability);
#else
	conn->want |= capability;
#endif
}

static void refuse_capability(struct fuse_conn_info *conn, unsigned capability)
{
#if FUSE_USE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	fuse_unset_feature_flag(conn, capability);
#else
	conn->want &= ~capability;
#endif
}

const char *bid_mode_name(enum bid_mode mode)
{
	static const char *const names[] = {
		[BID_MODE_PASSTHROUGH] = "passthrough",
		[BID_MODE_DAEMON] = "daemon",
		[BID_MODE_NO_OPEN] = "no_open",
	};

	return names[mode];
}

/* Request passthrough. Returns the obstacle, or NULL. */
static const char *try_passthrough(struct bid_fs *fs, struct fuse_conn_info *conn)
{
	const char *obstacle = bid_passthrough_obstacle();

	if (fs->options->passthrough == BID_PASSTHROUGH_OFF)
		return "switched off by passthrough=off";
	if (obstacle)
		return obstacle;
	if (!bid_passthrough_negotiate(conn, fs->stacked))
		return "the kernel has no passthrough (needs Linux 6.9)";
	return NULL;
}

void bid_op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct bid_fs *fs = userdata;
	const char *missing = try_passthrough(fs, conn);

	want_capability(conn, FUSE_CAP_PARALLEL_DIROPS);
	want_capability(conn, FUSE_CAP_AUTO_INVAL_DATA);
	want_capability(conn, FUSE_CAP_CACHE_SYMLINKS); /* another text is another inode: bid_entry_make() */
	/* OPEN does not truncate files */
	refuse_capability(conn, FUSE_CAP_ATOMIC_O_TRUNC);
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2 /* libfuse 3.17 */
	/* files here have no privileges for a write to drop */
	want_capability(conn, FUSE_CAP_HANDLE_KILLPRIV_V2);
#endif
	/* a pipe costs more than it saves */
	refuse_capability(conn, FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18) /* libfuse has it on by the environment, and request_loop.c reads the device */
	fuse_unset_feature_flag(conn, FUSE_CAP_OVER_IO_URING);
#endif
	want_capability(conn, FUSE_CAP_EXPORT_SUPPORT); /* NFS: LOOKUP of "." and "..", see ops_lookup.c */
	if (!missing) {
		fs->mode = BID_MODE_PASSTHROUGH;
	} else if (fs->writable) {
		fs->mode = BID_MODE_DAEMON;
	} else {
		/* Linux 5.1; openat2(2) needs 5.6 */
		want_capability(conn, FUSE_CAP_NO_OPEN_SUPPORT);
		fs->mode = BID_MODE_NO_OPEN;
	}
	snprintf(fs->mode_reason, sizeof(fs->mode_reason), "%s", missing ? missing : "");

	if (missing && fs->options->passthrough == BID_PASSTHROUGH_ON) {
		bid_error("%s: cannot mount with 'passthrough=on'", missing);
		fuse_session_exit(fs->session);
		return;
	}
	bid_info("mounted '%s' on '%s', mode %s%s%s", bid_store_path(fs->store), fs->options->mountpoint, bid_mode_name(fs->mode),
		 missing ? ": " : "", missing ? missing : "");
}

#if FUSE_USE_VERSION < FUSE_MAKE_VERSION(3, 17)
static ssize_t read_request(int fd, void *buffer, size_t size, void *userdata)
{
	return read(fd, buffer, size);
}

/* The first answer of a session is to FUSE_INIT. */
static ssize_t write_reply(int fd, struct iovec *iov, int count, void *userdata)
{
	static atomic_flag replied = ATOMIC_FLAG_INIT;
	const struct fuse_out_header *header = iov[0].iov_base;

	if (!atomic_flag_test_and_set(&replied) && count == 2 && header->error == 0 &&
	    iov[1].iov_len >= offsetof(struct fuse_init_out, flags) + sizeof(uint32_t))
		((struct fuse_init_out *)iov[1].iov_base)->flags |= FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2;
	return writev(fd, iov, count);
}

void bid_fix_init_reply(struct fuse_session *session)
{
	static const struct fuse_custom_io io = { .read = read_request, .writev = write_reply };
	int r = fuse_session_custom_io(session, &io, fuse_session_fd(session));

	if (r < 0)
		bid_warning("libfuse: cannot change the answer to FUSE_INIT: lookups in one directory wait for one another");
}
#else
void bid_fix_init_reply(struct fuse_session *session)
{
}
#endif
