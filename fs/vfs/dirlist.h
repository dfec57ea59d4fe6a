/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An open directory: its names, with stable offsets. Pure C: knows the namespace, not FUSE.
 *
 *	bid_dirlist_open()	OPENDIR: reads most directories at once; a listing is a snapshot
 *	bid_dirlist_at()	READDIR: reads links and all ids at the first name
 *	bid_dirlist_close()	RELEASEDIR
 *
 * The directory of all ids has 256 parts, and may have a million names. A listing that goes on behind a large part gets a
 * thread, which reads the next parts ahead; other listings have one part in memory. An offset comes from the inode number, and
 * so has the same meaning at any time and in any handle. Offset 0 reads anew.
 */
#ifndef BID_FS_DIRLIST_H
#define BID_FS_DIRLIST_H

#include <pthread.h>

#include "vfs/tree.h"

enum { BID_DIRLIST_THREADS = 8 }; /* limit of read-ahead threads */

struct bid_dirlist;

/* The state that all listings of a mount share. */
struct bid_dirlists {
	pthread_mutex_t lock; /* guards all below, and the parts of each listing; not held during a read */
	pthread_cond_t changed;
	unsigned threads;
	bool ended;
};

#define BID_DIRLISTS_INIT \
	{ \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

/* A name, and the offset behind it. */
struct bid_dirname {
	uint64_t number;
	uint64_t next; /* offset */
	mode_t format; /* S_IFDIR, S_IFLNK or S_IFREG */
	const char *name; /* valid until the next call */
};

/*
 * Open a listing of @node, whose number is @number. Borrows @lists and @tree. May block on disk. Errors as of bid_tree_list(),
 * and -ENOMEM.
 */
int bid_dirlist_open(struct bid_dirlists *lists, const struct bid_tree *tree, const struct bid_node *node, uint64_t number,
		     struct bid_dirlist **ret_list);

/*
 * Get the first name at or behind @offset, which is 0 or the .next of a name. Returns 1, 0 at the end, or a negative errno. May
 * block on disk. For one thread at a time.
 */
int bid_dirlist_at(struct bid_dirlist *list, uint64_t offset, struct bid_dirname *ret_name);

/* Close the listing, after its thread has finished. */
void bid_dirlist_close(struct bid_dirlist *list);

/* End all read-ahead threads. Call before the store goes: the kernel may leave directories open. No listing works afterwards. */
void bid_dirlists_end(struct bid_dirlists *lists);

#endif
