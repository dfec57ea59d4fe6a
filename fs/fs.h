/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * State of a mount: the user data of the session.
 *
 *	bid_session_run()	makes it, and releases it after the unmount
 *	bid_fs_of()		in each handler
 */
#ifndef BID_FS_FS_H
#define BID_FS_FS_H

#include <stdatomic.h>

#include "api/broker.h"
#include "options.h"
#include "vfs/fd_cache.h"
#include "vfs/inode.h"
#include "vfs/ratelimit.h"
#include "vfs/tree.h"
#include "vfs/whiteouts.h"
#include "write/tmpfile.h"

struct bid_sandbox;
struct fuse_session;

/* How readers get data. */
enum bid_mode {
	BID_MODE_PASSTHROUGH = 0, /* the kernel reads opened files from the store */
	BID_MODE_DAEMON, /* the daemon reads opened files */
	BID_MODE_NO_OPEN, /* a read-only mount: the kernel opens without a request, and keeps pages */
};

/*
 * Locking: a thread that holds the lock of @fd_cache may take the lock of @inodes. All other locks are leaves. A thread that
 * holds a lock calls neither the store nor the broker.
 */
struct bid_fs {
	const struct bid_options *options; /* borrowed */
	struct bid_store *store; /* borrowed */
	struct bid_broker *broker; /* owned; from after the fork */
	struct bid_sandbox *sandbox; /* owned; entered after the fork */
	struct bid_tree tree;
	struct bid_whiteouts probe_whiteouts, link_whiteouts; /* ids whose name was unlinked through the mount; own locks */
	struct bid_inodes *inodes; /* owned; own lock */
	struct bid_ratelimit ratelimit; /* limit of cache misses, by user; own lock */
	struct bid_fd_cache *fd_cache; /* owned; own lock */
	struct bid_tmpfiles *tmpfiles; /* owned; own lock */
	bool writable; /* the store is writable, and the mount is not "ro" */
	enum bid_mode mode; /* set once, by FUSE_INIT */
	_Atomic uint64_t refused; /* files that the kernel refused for passthrough */
	_Atomic int refused_error; /* the last errno; 0 for none */
	bool stacked; /* result of bid_passthrough_stacked() */
	char mode_reason[128]; /* reason against a better mode; "" for the best */
	struct timespec started; /* wall clock */
	uid_t uid; /* owner of nodes that are in no store */
	gid_t gid;
	struct fuse_session *session; /* borrowed; NULL before and after */
};

/* Seconds for which the kernel caches names and attributes of the store, and an absence there. perf writes it at any time. */
#define BID_TTL_STORE 1.0
/* Seconds for which the kernel caches names and attributes of the mount itself, and the absence of a name without a meaning. */
#define BID_TTL_MOUNT 86400.0

/* "passthrough", "daemon" or "no_open". Static. fuse/init.c */
const char *bid_mode_name(enum bid_mode mode);

/* Narrow the mode of @st, of a file of a store, to its owner and root if other users cannot reach the store. */
static inline void bid_fs_narrow(const struct bid_fs *fs, struct stat *st)
{
	if (fs->options->owner_only)
		st->st_mode &= S_IFMT | S_IRWXU;
}

/*
 * The permission bits that a file may get. With allow_other only its owner's: perf makes copies 0755 before it fills them, also
 * of files that few may read.
 */
static inline mode_t bid_fs_file_mode(const struct bid_fs *fs)
{
	return fs->options->allow_other ? S_IRWXU : 0755;
}

/* Has an option or an attribute switched off the servers? */
static inline bool bid_fs_is_offline(const struct bid_fs *fs)
{
	return fs->options->offline || bid_broker_is_offline(fs->broker);
}

#endif
