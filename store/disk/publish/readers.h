/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who reads a file where it is: whom its mode lets in, and of these who gets to it through the directories that it is in. Nobody
 * else is to read it in the store.
 */
#ifndef BID_DISK_READERS_H
#define BID_DISK_READERS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <bid/store.h>

struct bid_readers {
	mode_t mode; /* of a copy, which is read by them and nobody else: never more than 0555 */
	uid_t uid; /* whose it then is */
	gid_t gid;
	bool untold; /* the path is not known, or leads elsewhere */
	bool hidden; /* its directories let fewer through than its mode lets in: a hard link would be read by others */
};

/*
 * The readers of the file open at @fd, with @st. Directories that are the store's too hide nothing from whoever gets to the store,
 * and into a store that its owner alone gets to no other way leads. Of a file whose path nobody can tell, as in another mount
 * namespace, that is its owner alone.
 */
struct bid_readers bid_readers_of(struct bid_store *store, int fd, const struct stat *st);

/* As if every directory let everybody through. */
struct bid_readers bid_readers_by_mode(int fd, const struct stat *st);

/*
 * Let them be those of the copy open at @fd. A group or an owner that it cannot be given to does not read it. Returns 0, or as
 * fchmod(2).
 */
int bid_readers_set(const struct bid_readers *readers, int fd);

/* The path that the file open at @fd, with @st, has or had, whatever happens to it meanwhile. As readlink(2), -ENAMETOOLONG. */
int bid_readers_path(int fd, const struct stat *st, char ret_path[static PATH_MAX]);

#endif
