/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may read a file: whom its mode lets in, and of these whom the directories on the way to it let through. */
#ifndef BID_BASE_ACCESS_H
#define BID_BASE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/*
 * fstat(2), with a mode that lets nobody in whom the file does not. Of a file with an access control list, acl(5), that is its
 * owner alone: the list may refuse anybody else, and the bits of the group are its mask, not the group's rights. @fd may be an
 * O_PATH one. Returns 0.
 */
int bid_fstat(int fd, struct stat *ret_st);

/* Has the file @path such a list? So it is taken if that cannot be told. Follows links. */
bool bid_is_listed(const char *path);

/* The same of what is open at @fd, which may be an O_PATH descriptor. */
bool bid_fd_is_listed(int fd);

/* Whom the directories on the way to a file let through. */
struct bid_way {
	bool open; /* everybody */
	bool grouped; /* not everybody, but all of one group */
	gid_t gid;
	uid_t uid; /* whose the directories are that are not open; -1 if they are several users' */
};

#define BID_WAY_OPEN ((struct bid_way){ .open = true })

/* Does the directory with @st, @listed as of bid_is_listed(), let everybody through? */
bool bid_way_is_open(const struct stat *st, bool listed);

/* @way leads through that directory, too. With @st NULL, one that lets nobody through but root. */
void bid_way_pass(struct bid_way *way, const struct stat *st, bool listed);

/*
 * @way leads through the directories that @path, absolute and without links, is in, but for those in its first @len characters. May
 * block on what is mounted there.
 */
void bid_way_along(struct bid_way *way, const char *path, size_t len);

/* The same from the root on: does everybody get to @path? */
bool bid_all_get_to(const char *path);

/*
 * Leave in @st, of a file, of the readers those who come by @way. It is nobody's, (uid_t)-1, if its owner may be one who does not
 * get there himself.
 */
void bid_way_narrow(const struct bid_way *way, struct stat *st);

/* The same of a file that this process has opened: it reads it, and what is nobody's is its own. */
void bid_way_narrow_opened(const struct bid_way *way, struct stat *st);

#endif
