/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Telling the kernel that names changed which it did not ask about: what is written under one name is seen under the others at
 * once. The kernel waits for who uses the directory, perhaps for an answer of ours, so it is told from a thread of its own; and
 * whoever comes to that directory meanwhile waits behind it. So nothing is told of a directory while a name in it is known to be
 * waited for.
 */
#ifndef BID_FS_NOTIFY_H
#define BID_FS_NOTIFY_H

#include "fs.h"

struct bid_notifier;

/* What the kernel was told of, which is to be taken back together. */
struct bid_told_name {
	struct bid_told_name *next;
	uint64_t number; /* of the inode: its attributes, and the text of a link; 0 for the name alone */
	bool is_link;
	uint64_t dir; /* of the name */
	char name[]; /* "" for the inode alone */
};

/* The name @name in @dir alone, to be freed by free(3). NULL without memory: it is seen later, then. */
struct bid_told_name *bid_told_name_new(uint64_t dir, const char *name);

/* Somebody waits for a name in a directory. Zero if nobody does. */
struct bid_hold {
	uint64_t dir; /* 0 if it is none */
	struct bid_hold *next, **link; /* under the notifier's lock; .link is what points here */
};

/* Starts the thread: only after daemonising. */
int bid_notifier_new(struct fuse_session *session, struct bid_inodes *inodes, struct bid_notifier **ret_notifier);

/*
 * Drop the changes that the kernel was not told of, and free @notifier, which may be NULL. Returns false if its thread does not end
 * within two seconds: it waits in the kernel for the lock of a directory, where a program looks up a name, and nobody answers that
 * any more. The thread still uses @notifier, the session and the inodes then. To be called again once the connection is aborted.
 */
bool bid_notifier_free(struct bid_notifier *notifier);

/*
 * A build came, went or changed in the store: the names of @id in all views but @path ("usr/bin/ls/ID"), in which it was done. Does
 * not block. @notifier may be NULL.
 */
void bid_notify_build(struct bid_notifier *notifier, const struct bid_id *id, const char *path);

/*
 * Until the kernel was told of every build so far, and of the names that were given before the last one, but not of what is put
 * off; for @ms at most. By who is in no directory that it may be told of.
 */
void bid_notify_wait(struct bid_notifier *notifier, unsigned ms);

/* Take back all of the list @names, which is taken over and may be NULL. Does not block. */
void bid_notify_names(struct bid_notifier *notifier, struct bid_told_name *names);

/* What is to be told of names in @dir is told after bid_notify_release(). @hold is the caller's, and is not moved until then. */
void bid_notify_hold(struct bid_notifier *notifier, struct bid_hold *hold, uint64_t dir);

/* After the answer. @hold may be zero. */
void bid_notify_release(struct bid_notifier *notifier, struct bid_hold *hold);

#endif
