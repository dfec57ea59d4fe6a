/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that a program writes: the bytes come at any offset, and the caller says at the end what they are:
 *
 *   bid_written_file_new()
 *     bid_written_file_fd(), bid_written_file_write()		any number of times
 *     bid_written_file_publish() or bid_written_file_abandon()
 *   bid_written_file_free()
 *
 * Nothing of the file remains after the death of the process. Multithreading: any number of threads. All functions may block on
 * disk.
 */
#ifndef BID_API_WRITTEN_FILE_H
#define BID_API_WRITTEN_FILE_H

#include <sys/types.h>

#include "api/store.h"

struct bid_written_file;

/* Returns -EROFS on a store opened without BID_STORE_WRITE. */
int bid_written_file_new(struct bid_store *store, struct bid_written_file **ret_file);

/* The file, open for reading and writing. Lives as long as @file. */
int bid_written_file_fd(const struct bid_written_file *file);

/*
 * Hold off publishing during a change through the descriptor, until bid_written_file_unlock(). Returns 0, or -EPERM, without the
 * lock, after publishing: the file is the artifact then.
 */
int bid_written_file_lock(struct bid_written_file *file);
void bid_written_file_unlock(struct bid_written_file *file);

/* Write all of @len bytes at @offset; a full disk evicts downloads once. Returns 0, or as bid_written_file_lock() or pwrite(2). */
int bid_written_file_write(struct bid_written_file *file, const void *data, size_t len, off_t offset);

/*
 * Publish the written file as @artifact in the directory @path, "usr/bin/ls/ID". An existing artifact stays, and gets
 * this name too. Its names are not on disk before its bytes; bid_store_sync() waits for both. The caller vouches for the kernel of
 * a symbol table: the table does not name it. Returns 0, or
 *   -EBADMSG	not an ELF file, damaged, with another id, or debuginfo without debug sections or symbol table; as a kernel's symbol
 *   		table, not in its format (proc(5), /proc/kallsyms), or without addresses, which the kernel hides from some users
 *   -EINVAL	@path is no path of this form, or @artifact has a kind that cannot be added
 *   -ESTALE	after bid_written_file_abandon()
 *   other	as write(2), sync_file_range(2), mkdir(2), link(2)
 */
int bid_written_file_publish(struct bid_written_file *file, const struct bid_artifact *artifact, const char *path);

/*
 * Refuse bid_written_file_publish() from now on; reading and writing stay possible. Waits for a running one. Returns 0, or -EPERM
 * after publishing.
 */
int bid_written_file_abandon(struct bid_written_file *file);

/* The reason of the last -EBADMSG of bid_written_file_publish(), in words, or "". Lives as long as @file. */
const char *bid_written_file_reason(const struct bid_written_file *file);

/* @file may be NULL. */
void bid_written_file_free(struct bid_written_file *file);

#endif
