/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the handlers of the file system share. It is the session's user data. */
#ifndef BID_FS_FS_H
#define BID_FS_FS_H

#include <fuse_lowlevel.h>
#include <stdatomic.h>

#include "api/broker.h"
#include "options.h"
#include "vfs/dirlist.h"
#include "vfs/fd_cache.h"
#include "vfs/inode.h"
#include "vfs/ratelimit.h"
#include "vfs/tree.h"
#include "vfs/unlinked.h"
#include "write/tmpfile.h"

struct bid_backings;
struct bid_sandbox;

/* How data gets to readers. */
enum bid_mode {
	BID_MODE_UNDECIDED = 0,
	BID_MODE_PASSTHROUGH, /* opened files are read by the kernel from the store itself */
	BID_MODE_SERVER, /* opened files are read by the daemon */
	BID_MODE_NO_OPEN, /* of a mount that nobody writes to: the kernel opens without asking, and keeps the pages it read */
};

/* A directory of ids whose listing the kernel keeps. */
struct bid_listed {
	atomic_ullong cookie; /* of the ids when it was opened last */
	atomic_ullong changed; /* when they were found to be others than before: wall clock, in ns; 0 is never */
};

/*
 * Lock order: a thread that holds the lock of @backings or of @fd_cache may take that of @inodes. The other locks are leaves,
 * and no lock is held while a function of the store or the broker runs.
 */
struct bid_fs {
	const struct bid_options *options; /* borrowed */
	struct bid_store *store; /* borrowed */
	struct bid_broker *broker; /* owned; made after daemonising */
	struct bid_sandbox *sandbox; /* owned; entered after daemonising */
	struct bid_tree tree;
	struct bid_unlinked unlinked_probes, unlinked_links; /* unlinked through the mount; have their own locks */
	struct bid_dirlists listings; /* has its own lock */
	struct bid_inodes *inodes; /* owned; has its own lock */
	struct bid_ratelimit ratelimit; /* of misses, by user; has its own lock */
	struct bid_fd_cache *fd_cache; /* owned; has its own lock */
	struct bid_tmpfiles *tmpfiles; /* owned; has its own lock */
	bool writable; /* the store is, and nobody said "ro" */
	struct bid_backings *backings; /* owned; has its own lock, which is also that of the files' attachments */
	enum bid_mode mode; /* written once, when the kernel says hello */
	bool stacked; /* as bid_mode_stacked() */
	char mode_reason[128]; /* why not a better one; "" if it is the best */
	_Atomic uint32_t snapshots; /* of status and metrics so far */
	struct timespec started; /* wall clock */
	struct bid_listed all_ids; /* buildid */
	struct bid_listed links[UINT8_MAX + 1]; /* .build-id/xx */
	uid_t uid; /* who owns what is in no store */
	gid_t gid;
	struct fuse_session *session; /* borrowed */
};

/* Seconds for which the kernel caches names and attributes of the store, which perf writes at any time. */
#define BID_STALE 1.0
/* ... and what depends on nothing. */
#define BID_FOREVER 86400.0

/* The table of handlers. */
extern const struct fuse_lowlevel_ops bid_ops;

static inline struct bid_fs *bid_fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Leave to @st, of a file of a store, only the owner of the file and root, if others do not get to the store. */
static inline void bid_fs_narrow(const struct bid_fs *fs, struct stat *st)
{
	if (fs->options->closed)
		st->st_mode &= S_IFMT | S_IRWXU;
}

/* Was it told to ask no server, at its start or since? */
static inline bool bid_fs_is_offline(const struct bid_fs *fs)
{
	return fs->options->offline || bid_broker_is_offline(fs->broker);
}

#endif
