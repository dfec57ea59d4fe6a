/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two classes of files: readable by all, or by owner and root alone. The store decides when it adds a file: all can read it if its
 * mode, without an access control list, and its directories let all users read. The mode of the stored file keeps the class; a
 * later change of those directories has no effect.
 */
#ifndef BID_BASE_WORLD_READABLE_H
#define BID_BASE_WORLD_READABLE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Does @mode let all users read? */
static inline bool bid_mode_is_world_readable(mode_t mode)
{
	mode_t all = S_IRUSR | S_IRGRP | S_IROTH;

	return (mode & all) == all;
}

/*
 * fstat(2), with the mode of the file's class: without any right of group and others unless everybody reads it. Such a file belongs
 * to its owner; or to this process, which could open it, if that is not root. @fd may be an O_PATH descriptor. Returns 0.
 */
int bid_fstat(int fd, struct stat *ret_st);

/* Can all users pass the directory open at @fd, with the attributes @st? */
bool bid_dir_is_world_searchable(int fd, const struct stat *st);

/*
 * Do the directories that @path, absolute and without links, is in let everybody through? Those that @beside is in too, the path of
 * a store or NULL, do not count: they hide the store as well. May block on what is mounted there.
 */
bool bid_path_is_world_searchable(const char *path, const char *beside);

/*
 * Does everybody read the file open at @fd, with @st, where it is? False if the path leads to another file, as from another mount
 * namespace. A deleted file counts as in the directory that it had, if only root or its owner can have made that.
 */
bool bid_is_world_readable(int fd, const struct stat *st, const char *beside);

/*
 * Let everybody read the file open at @fd if everybody reads one of @mode, and else only @owner and root; or this process, if it
 * may not give the file away. Returns 0, or as fchmod(2).
 */
int bid_set_readers(int fd, mode_t mode, uid_t owner);

#endif
