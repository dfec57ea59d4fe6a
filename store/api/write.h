/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing to a store the way perf writes to its cache (perf, util/build-id.c), step by step: directories are made, a file is
 * written under a temporary name and then linked to its place, perf's link follows. For a file system that lets perf do so; the
 * rules of the store hold all the same: bytes are checked before they have a name, and an id has one object.
 *
 * Paths are relative to the store, without "..". All of these return -EROFS on a store opened without BID_STORE_WRITE, and may
 * block on disk.
 */
#ifndef BID_API_WRITE_H
#define BID_API_WRITE_H

#include "api/store.h"

/* A file that is being written, which has no name in the store yet; if the process dies nothing of it stays behind. */
struct bid_stage;

int bid_stage_new(struct bid_store *store, struct bid_stage **ret_stage);

/* @stage may be NULL. */
void bid_stage_free(struct bid_stage *stage);

/* The file, open for reading and writing. Lives as long as @stage. */
int bid_stage_fd(const struct bid_stage *stage);

/*
 * Keep the file from being published while it is changed by its descriptor, until bid_stage_unlock(). Returns 0, or -EPERM, without
 * that, once it was: it is the artifact then.
 */
int bid_stage_lock(struct bid_stage *stage);
void bid_stage_unlock(struct bid_stage *stage);

/*
 * Write all of @len bytes at @offset; on a full disk, what was fetched is evicted once to make room. Returns 0, or as
 * bid_stage_lock() or pwrite(2).
 */
int bid_stage_write(struct bid_stage *stage, const void *data, size_t len, off_t offset);

/*
 * Put what was written into the store as the artifact @request, for the directory @path, "usr/bin/ls/ID". If the artifact is there
 * already, that one stays, and gets this name too. The bytes are on disk on return, the names after the next bid_store_sync().
 * Returns 0, or
 *   -EBADMSG	not an ELF file, damaged, with another id, or debuginfo without debug sections or symbol table; as a kernel's symbol
 *		table, not in the format of one (proc(5), /proc/kallsyms), or without addresses, which the kernel hides from some
 *   -EINVAL	@path is none of an original path, or @request is not of a kind that is added
 *   -ESTALE	after bid_stage_end()
 *   other	as write(2), fsync(2), mkdir(2), link(2)
 * A kernel's symbol table does not say whose it is: that is believed.
 */
int bid_stage_publish(struct bid_stage *stage, const struct bid_request *request, const char *path);

/*
 * The same as the file @name, "kcore", "kallsyms" or "modules", of a copy of /proc/kcore, the directory @dir:
 * "[kernel.kcore]/ID/STAMP" (perf, builtin-buildid-cache.c: build_id_cache__add_kcore()). Nothing in it says whose it is, so it is
 * taken as it is; but no kcore that is cut short, which is -EBADMSG. -EEXIST if there is another file of that name.
 */
int bid_stage_publish_kcore(struct bid_stage *stage, const char *dir, const char *name);

/*
 * bid_stage_publish() is refused from now on, but @stage may still be written and read; waits for one that is on its way. Returns
 * 0, or -EPERM if it was published.
 */
int bid_stage_end(struct bid_stage *stage);

/* Why bid_stage_publish() or bid_stage_publish_kcore() said -EBADMSG, in words. Lives as long as @stage. */
const char *bid_stage_reason(const struct bid_stage *stage);

/* mkdir(2) and rmdir(2). Parents that are missing are made. */
int bid_store_mkdir(struct bid_store *store, const char *path);
int bid_store_rmdir(struct bid_store *store, const char *path);

/*
 * perf's link for @id with the text @text. Returns 0, -EEXIST if there is one already, whatever it says, or -EINVAL if the text
 * has another form than perf's.
 */
int bid_store_symlink(struct bid_store *store, const struct bid_id *id, const char *text);

/* Remove perf's link for @id, and nothing else. Returns 0, or -ENOENT if there is no such link. */
int bid_store_unlink_link(struct bid_store *store, const struct bid_id *id);

/* Remove the file of @request in the directory @path. -ENOENT if there is none. */
int bid_store_unlink(struct bid_store *store, const struct bid_request *request, const char *path);

/* Is @found the file of @request in @store itself, not in a lower one, and without another name, such as that it was added from? */
bool bid_store_has_alone(struct bid_store *store, const struct bid_request *request, const struct stat *found);

/* unlink(2) of a file, rmdir(2) of the directory of a copy of /proc/kcore; what nobody is shown does not count as there. */
int bid_store_unlink_kcore(struct bid_store *store, const char *path);
int bid_store_rmdir_kcore(struct bid_store *store, const char *path);

/*
 * Open the probe definitions of @id for reading and writing: those that bid_store_find() finds in the store, or where perf's link
 * leads, or else in @path; with @create they are made if there are none, with what a lower store has. They are text that perf
 * writes in place, so there is no transaction. Returns 0 and a descriptor for the caller to close, or -ENOENT.
 */
int bid_store_open_probes(struct bid_store *store, const struct bid_id *id, const char *path, bool create, int *ret_fd);

#endif
