/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may read a file. */
#ifndef BID_BASE_ACCESS_H
#define BID_BASE_ACCESS_H

#include <sys/stat.h>

/*
 * fstat(2), with a mode that lets nobody in whom the file does not. Of a file with an access control list, acl(5), that is its
 * owner alone: the list may refuse anybody else, and the bits of the group are its mask, not the group's rights. Returns 0.
 */
int bid_fstat(int fd, struct stat *ret_st);

#endif
