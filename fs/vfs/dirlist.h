/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An open directory: its names, at offsets that hold. Pure C: knows the namespace, not FUSE.
 *
 * Most directories are read when they are opened, and a listing shows what was there then. Those of links, which the kernel keeps
 * and rarely asks for, are read when the first name is asked for. The directory with all ids, which may be a million, is read part
 * by part as it is listed. A listing that goes on behind a part of many names gets the next parts read by a thread meanwhile; a few
 * listings have a thread at a time, and each of the others has one part in memory. The offsets are made of the inode numbers: they
 * mean the same at every time and in every handle, whatever perf adds or removes in between. A listing that goes back to the
 * beginning reads anew.
 */
#ifndef BID_FS_DIRLIST_H
#define BID_FS_DIRLIST_H

#include <pthread.h>

#include "vfs/tree.h"

enum { BID_DIRLIST_THREADS = 8 }; /* that read ahead, at most, at a time */

struct bid_dirlist;

/* What all listings of a mount share. */
struct bid_dirlists {
	pthread_mutex_t lock; /* protects all below, and the parts of each listing; not held while a part is read */
	pthread_cond_t changed;
	unsigned threads;
	bool ended;
};

#define BID_DIRLISTS_INIT \
	{ \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

/* One name, and where the listing goes on behind it. */
struct bid_dirname {
	uint64_t number;
	uint64_t next; /* offset */
	mode_t format; /* S_IFDIR, S_IFLNK or S_IFREG */
	const char *name; /* until the next call */
};

/*
 * List @node, whose number is @number, until it is closed. @lists and @tree are borrowed. May block on disk. Errors as of
 * bid_tree_list(), and -ENOMEM.
 */
int bid_dirlist_open(struct bid_dirlists *lists, const struct bid_tree *tree, const struct bid_node *node, uint64_t number,
		     struct bid_dirlist **ret_list);

/*
 * The first name at or behind @offset, which is 0 or the .next of a name. Returns 1 and that, 0 at the end, or a negative errno.
 * May block on disk. For one thread at a time.
 */
int bid_dirlist_at(struct bid_dirlist *list, uint64_t offset, struct bid_dirname *ret_name);

/* Waits for what is being read. */
void bid_dirlist_close(struct bid_dirlist *list);

/*
 * End the threads of all listings: they must not outlive the store, and the kernel need not close a directory before the session
 * ends. Nothing is listed any more.
 */
void bid_dirlists_end(struct bid_dirlists *lists);

#endif
