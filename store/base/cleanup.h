/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Owned locals that release themselves; bid_steal_*() hands one over. Releasing keeps errno. */
#ifndef BID_BASE_CLEANUP_H
#define BID_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define bid_cleanup(function) __attribute__((cleanup(function)))

static inline void bid_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
}

static inline void bid_cleanup_fd(int *fd)
{
	bid_close(*fd);
}

static inline void bid_cleanup_free(void *pointer)
{
	int saved = errno;

	free(*(void **)pointer);
	errno = saved;
}

static inline void bid_cleanup_dir(DIR **dir)
{
	int saved = errno;

	if (*dir)
		closedir(*dir);
	errno = saved;
}

static inline void bid_cleanup_file(FILE **file)
{
	int saved = errno;

	if (*file)
		fclose(*file);
	errno = saved;
}

#define bid_auto_fd   bid_cleanup(bid_cleanup_fd)
#define bid_auto_free bid_cleanup(bid_cleanup_free)
#define bid_auto_dir  bid_cleanup(bid_cleanup_dir)
#define bid_auto_file bid_cleanup(bid_cleanup_file)

static inline int bid_steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#define bid_steal(pointer) \
	({ \
		__typeof__(pointer) *bid_from = &(pointer); \
		__typeof__(pointer) bid_stolen = *bid_from; \
		*bid_from = NULL; \
		bid_stolen; \
	})

#endif
