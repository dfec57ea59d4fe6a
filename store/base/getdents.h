/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Directories by getdents64(2), for walks: opendir(3) costs three more system calls and an allocation for each directory. */
#ifndef BID_BASE_GETDENTS_H
#define BID_BASE_GETDENTS_H

#include <stdint.h>

/* Layout of the kernel: linux_dirent64 of getdents64(2). */
struct bid_dent {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type; /* DT_REG and its like */
	char name[];
};

enum { BID_DENTS_SIZE = 4096 }; /* bytes that are read at a time; every name fits */

/* A directory that is being read. On the stack of a walk, one for each level. */
struct bid_dents {
	int fd; /* borrowed */
	long len, at;
	_Alignas(struct bid_dent) char buffer[BID_DENTS_SIZE];
};

/* Begin to read the directory open at @fd where its offset is. */
void bid_dents_init(struct bid_dents *dents, int fd);

/*
 * The next entry, which lives until the next call, or NULL at the end; then errno is 0, or says why it ended there. The caller may
 * change the entry.
 */
struct bid_dent *bid_dents_next(struct bid_dents *dents);

#endif
