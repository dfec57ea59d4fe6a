/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing to a store in the steps in which perf writes to its cache (perf, util/build-id.c): create directories, write a file under
 * a temporary name, link it to its final name, create perf's link. A file system offers these steps to perf. The rules of the store
 * hold too: it checks bytes before they get a name, and an id has one object. Paths are relative to the store, without "..". All
 * functions return -EROFS on a store opened without BID_STORE_WRITE, and may block on disk.
 */
#ifndef BID_API_PERF_WRITE_H
#define BID_API_PERF_WRITE_H

#include "api/store.h"

/*
 * A transaction as in "api/store.h", but the bytes come at any offset, and the caller says at the end what they are:
 *
 *   bid_txn_begin_write()
 *     bid_txn_fd(), bid_txn_write_at()		any number of times
 *     bid_txn_commit_as() or bid_txn_abandon()
 *   bid_txn_free()
 *
 * Nothing of the file remains after the death of the process. Multithreading: any number of threads.
 */
int bid_txn_begin_write(struct bid_store *store, struct bid_txn **ret_txn);

/* The file, open for reading and writing. Lives as long as @txn. */
int bid_txn_fd(const struct bid_txn *txn);

/*
 * Hold off publishing during a change through the descriptor, until bid_txn_unlock(). Returns 0, or -EPERM, without the lock, after
 * publishing: the file is the artifact then.
 */
int bid_txn_lock(struct bid_txn *txn);
void bid_txn_unlock(struct bid_txn *txn);

/* Write all of @len bytes at @offset; a full disk evicts downloads once. Returns 0, or as bid_txn_lock() or pwrite(2). */
int bid_txn_write_at(struct bid_txn *txn, const void *data, size_t len, off_t offset);

/*
 * Publish the written file as the artifact @request in the directory @path, "usr/bin/ls/ID". An existing artifact stays, and gets
 * this name too. Its names are not on disk before its bytes; bid_store_sync() waits for both. The caller vouches for the kernel of
 * a symbol table: the table does not name it. Returns 0, or
 *   -EBADMSG	not an ELF file, damaged, with another id, or debuginfo without debug sections or symbol table; as a kernel's symbol
 *   		table, not in its format (proc(5), /proc/kallsyms), or without addresses, which the kernel hides from some users
 *   -EINVAL	@path is no path of this form, or @request has a kind that cannot be added
 *   -ESTALE	after bid_txn_abandon()
 *   other	as write(2), sync_file_range(2), mkdir(2), link(2)
 */
int bid_txn_commit_as(struct bid_txn *txn, const struct bid_request *request, const char *path);

/*
 * Refuse bid_txn_commit_as() from now on; reading and writing stay possible. Waits for a running one. Returns 0, or -EPERM after
 * publishing.
 */
int bid_txn_abandon(struct bid_txn *txn);

/* mkdir(2) and rmdir(2), which return a negative errno. The former creates missing parents. */
int bid_store_mkdir(struct bid_store *store, const char *path);
int bid_store_rmdir(struct bid_store *store, const char *path);

/*
 * Create perf's link for @id with the text @text. Returns 0, -EEXIST if there is a link already, with any text, or -EINVAL if the
 * text has another form than perf's.
 */
int bid_store_symlink(struct bid_store *store, const struct bid_id *id, const char *text);

/* Remove perf's link for @id, and nothing else. Returns 0, or -ENOENT if there is no such link. */
int bid_store_unlink_link(struct bid_store *store, const struct bid_id *id);

/* Remove the file of @request in the directory @path. -ENOENT if there is none. */
int bid_store_unlink(struct bid_store *store, const struct bid_request *request, const char *path);

/*
 * Is @found the file of @request in @store itself, not in a lower store, and without another name, for example that of its source?
 */
bool bid_store_has_alone(struct bid_store *store, const struct bid_request *request, const struct stat *found);

/*
 * Open the probe definitions of @id for reading and writing: the file that bid_store_find() finds in the store, else at the target
 * of perf's link, else in @path. With @create, create them if there are none, with the content that bid_store_find() finds. perf
 * writes this text in place, so there is no transaction. Returns 0 and a descriptor for the caller to close, or -ENOENT.
 */
int bid_store_open_probes(struct bid_store *store, const struct bid_id *id, const char *path, bool create, int *ret_fd);

#endif
